// The three streams of a program whose caller closed some of them.
#pragma once

#include <fcntl.h>
#include <unistd.h>

namespace caffe::tools {

// Gives closed streams /dev/null. Else the first files that the program opens, such as a database,
// take the streams' numbers and get what is printed.
inline void OpenStandardStreams() {
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (fcntl(stream, F_GETFD) < 0) open("/dev/null", O_RDWR);  // takes the lowest number
  }
}

}  // namespace caffe::tools
