fuzz_target(dossier assay_reports)
