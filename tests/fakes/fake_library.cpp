// fake_library: a shared library with one function, for the tests of opening libraries at run time.
extern "C" int fake_library_answer() { return 42; }
