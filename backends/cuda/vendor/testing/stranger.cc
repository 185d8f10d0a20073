// An object that is none of assay's.
extern "C" __attribute__((visibility("default"))) int stranger() { return 1; }
