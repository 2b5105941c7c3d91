// Reopens standard streams that the program's caller closed.
#pragma once

#include <fcntl.h>
#include <unistd.h>

namespace caffe::tools {

// Opens /dev/null for closed streams. Otherwise the first files that the program opens, such as a
// database, get the streams' numbers, and output would be printed into them.
inline void OpenStandardStreams() {
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (fcntl(stream, F_GETFD) < 0) open("/dev/null", O_RDWR);  // takes the lowest number
  }
}

}  // namespace caffe::tools
