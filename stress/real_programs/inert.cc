// A library without malloc: the suite has to notice, when this is preloaded, that it takes no part.
extern "C" __attribute__((visibility("default"))) int rtspan_inert() { return 0; }
