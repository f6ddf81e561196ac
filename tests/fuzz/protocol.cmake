fuzz_target(protocol assay_wire)
