// A shared object that is no plugin at all.
extern "C" __attribute__((visibility("default"))) int something_else() { return 1; }
