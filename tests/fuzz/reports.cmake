fuzz_target(dossier assay_dossier)
