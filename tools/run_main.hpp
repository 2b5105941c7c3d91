// What every program does when it gets no memory at a moment in which nobody else can say so.
#pragma once

#include <cstdio>
#include <new>

namespace caffe::tools {

// Returns what `program` returns, or 1 when it had too little memory.
template <typename Program>
int RunMain(const char* name, Program&& program) {
  try {
    return program();
  } catch (const std::bad_alloc&) {
    // Not by the log, which may not have begun and takes memory itself.
    std::fprintf(stderr, "%s: the machine's memory is used up\n", name);
    return 1;
  }
}

}  // namespace caffe::tools
