#include "caffe/io/content_mark.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <memory>
#include <string_view>

#include "caffe/core/file_descriptor.hpp"
#include "caffe/core/hash.hpp"
#include "caffe/error.hpp"
#include "caffe/io/atomic_file.hpp"
#include "caffe/io/open_error.hpp"

namespace caffe {
namespace {

constexpr size_t kBlock = size_t{1} << 16;

// Reads a block at `offset`; it is shorter at the end of the file.
std::string_view ReadBlock(int descriptor, uint64_t offset, const std::string& path, char* block) {
  size_t filled = 0;
  while (filled < kBlock) {
    const ssize_t count =
        ::pread(descriptor, block + filled, kBlock - filled, static_cast<off_t>(offset + filled));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) {
      const int error = errno;
      throw IoError(StrCat(path, ": cannot read: ", ErrnoText(error)));
    }
    if (count == 0) break;
    filled += static_cast<size_t>(count);
  }
  return {block, filled};
}

FileDescriptor OpenToRead(const std::string& path) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor >= 0) return FileDescriptor(descriptor);
  throw OpenError(path, errno);
}

}  // namespace

ContentMark MarkOf(int descriptor, const std::string& path) {
  const auto block = std::make_unique<char[]>(kBlock);
  ContentMark mark;
  WordHash hash;
  for (bool is_end = false; !is_end;) {
    const std::string_view bytes = ReadBlock(descriptor, mark.bytes, path, block.get());
    hash.Add(bytes);
    mark.bytes += bytes.size();
    is_end = bytes.size() < kBlock;
  }
  mark.hash = hash.value();
  return mark;
}

ContentMark MarkOfFile(const std::string& path) {
  return MarkOf(OpenToRead(path).get(), path);
}

ContentMark SampledMarkOfFile(const std::string& path) {
  constexpr uint64_t kWhole = uint64_t{64} << 20, kSamples = 256;
  const FileDescriptor file = OpenToRead(path);
  struct stat status {};
  if (::fstat(file.get(), &status) != 0 || static_cast<uint64_t>(status.st_size) <= kWhole)
    return MarkOf(file.get(), path);
  const auto block = std::make_unique<char[]>(kBlock);
  ContentMark mark{.bytes = static_cast<uint64_t>(status.st_size)};
  WordHash hash;
  const uint64_t last = mark.bytes - kBlock;
  for (uint64_t i = 0; i < kSamples; ++i)
    hash.Add(ReadBlock(file.get(), last / (kSamples - 1) * i, path, block.get()));
  hash.Add(ReadBlock(file.get(), last, path, block.get()));
  mark.hash = hash.value();
  return mark;
}

}  // namespace caffe
