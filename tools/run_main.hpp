// Reports running out of memory when nothing else in the program can.
#pragma once

#include <cstdio>
#include <new>

namespace caffe::tools {

// Returns the result of `program`, or 1 if memory ran out.
template <typename Program>
int RunMain(const char* name, Program&& program) {
  try {
    return program();
  } catch (const std::bad_alloc&) {
    // Not with the log, which may not have started and allocates memory itself.
    std::fprintf(stderr, "%s: the machine's memory is used up\n", name);
    return 1;
  }
}

}  // namespace caffe::tools
