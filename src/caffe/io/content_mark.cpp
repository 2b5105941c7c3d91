#include "caffe/io/content_mark.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <memory>

#include "caffe/core/file_descriptor.hpp"
#include "caffe/core/hash.hpp"
#include "caffe/error.hpp"
#include "caffe/io/atomic_file.hpp"

namespace caffe {

ContentMark MarkOf(int descriptor, const std::string& path) {
  using Block = std::array<char, size_t{1} << 16>;
  const auto block = std::make_unique<Block>();
  ContentMark mark;
  WordHash hash;
  while (true) {
    // Blocks are whole, but for the last: their size is part of what is hashed.
    size_t filled = 0;
    while (filled < block->size()) {
      const ssize_t count = ::pread(descriptor, block->data() + filled, block->size() - filled,
                                    static_cast<off_t>(mark.bytes + filled));
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) {
        const int error = errno;
        throw IoError(StrCat(path, ": cannot read: ", ErrnoText(error)));
      }
      if (count == 0) break;
      filled += static_cast<size_t>(count);
    }
    hash.Add({block->data(), filled});
    mark.bytes += filled;
    if (filled < block->size()) break;
  }
  mark.hash = hash.value();
  return mark;
}

ContentMark MarkOfFile(const std::string& path) {
  const FileDescriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!file) {
    const int error = errno;
    throw IoError(StrCat(path, ": cannot open: ", ErrnoText(error)));
  }
  return MarkOf(file.get(), path);
}

}  // namespace caffe
