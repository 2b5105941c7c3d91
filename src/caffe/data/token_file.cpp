#include "caffe/data/token_file.hpp"

#include <fcntl.h>
#include <google/protobuf/util/json_util.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "caffe/error.hpp"
#include "caffe/io/atomic_file.hpp"
#include "caffe/io/json.hpp"
#include "caffe/io/open_error.hpp"

namespace caffe::data {
namespace {

constexpr uint64_t kNewestFormat = 1;
// Tokens are held as float, which has each whole number up to this one.
constexpr uint64_t kMostTokenKinds = uint64_t{1} << 24;
constexpr uint64_t kMostTokens = uint64_t{1} << 48;

uint64_t TokenField(const JsonObject& object, const std::string& file, const char* name,
                    uint64_t least, uint64_t most) {
  const auto found = object.fields().find(name);
  const bool is_number = found != object.fields().end() && found->second.has_number_value();
  const double value = is_number ? found->second.number_value() : -1;
  if (value < static_cast<double>(least) || value > static_cast<double>(most) ||
      value != static_cast<double>(static_cast<uint64_t>(value))) {
    throw IoError(StrCat(file, ": ", name, " is ",
                         is_number ? StrCat(value) : "missing or no number", "; it must be from ",
                         least, " to ", most, "; make the folder again: caffe data import-text"));
  }
  return static_cast<uint64_t>(value);
}

FileDescriptor OpenTokens(const std::string& path) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0) throw OpenError(path, errno);
  return FileDescriptor(descriptor);
}

}  // namespace

TokenFile::TokenFile(const std::string& folder)
    : facts_(ReadFacts(folder + "/tokens.json")),
      path_(folder + "/tokens.bin"),
      file_(OpenTokens(path_)) {
  struct stat status = {};
  ::fstat(file_.get(), &status);
  const auto found = static_cast<uint64_t>(status.st_size);
  const uint64_t wanted = facts_.count * facts_.bytes_per_token;
  if (!S_ISREG(status.st_mode) || found != wanted) {
    throw IoError(StrCat(path_, ": has ", found, " bytes, and tokens.json says ", facts_.count,
                         " tokens of ", facts_.bytes_per_token, " bytes: ", wanted,
                         "; the file is damaged, so make it again: caffe data import-text"));
  }
}

TokenFile::Facts TokenFile::ReadFacts(const std::string& file) {
  constexpr uint64_t kMostBytes = 1 << 20;
  JsonObject object;
  const auto status =
      google::protobuf::util::JsonStringToMessage(ReadFile(file, kMostBytes), &object);
  if (!status.ok()) {
    throw IoError(
        StrCat(file, ": not what caffe data import-text writes: ", std::string(status.message())));
  }
  const uint64_t format = TokenField(object, file, "format", 1, UINT32_MAX);
  if (format > kNewestFormat) {
    throw IoError(StrCat(file, ": format is ", format, ", of a newer version; this one reads ",
                         kNewestFormat, " and older"));
  }
  Facts facts;
  facts.count = TokenField(object, file, "tokens", 1, kMostTokens);
  facts.vocabulary =
      static_cast<uint32_t>(TokenField(object, file, "vocabulary", 1, kMostTokenKinds));
  facts.bytes_per_token = static_cast<uint32_t>(TokenField(object, file, "bytes_per_token", 1, 4));
  const auto name = object.fields().find("tokenizer");
  if (name != object.fields().end()) facts.tokenizer = name->second.string_value();
  return facts;
}

void TokenFile::Read(uint64_t first, uint64_t count, float* numbers) {
  const uint64_t bytes = facts_.bytes_per_token;
  block_.resize(count * bytes);
  size_t filled = 0;
  while (filled < block_.size()) {
    const uint64_t offset = first * bytes + filled;
    const ssize_t got = ::pread(file_.get(), block_.data() + filled, block_.size() - filled,
                                static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) {
      const int error = errno;
      throw IoError(StrCat(path_, ": cannot read: ", ErrnoText(error)));
    }
    if (got == 0) {
      throw IoError(StrCat(path_, ": ends at byte ", offset, " of ", facts_.count * bytes,
                           "; it was cut off while it was read"));
    }
    filled += static_cast<size_t>(got);
  }
  for (uint64_t i = 0; i < count; ++i) {
    uint32_t number = 0;
    for (uint64_t byte = bytes; byte-- > 0;) number = number << 8 | block_[i * bytes + byte];
    if (number >= facts_.vocabulary) {
      throw IoError(StrCat(path_, ": token ", first + i, " is ", number, ", and tokens.json says ",
                           facts_.vocabulary, " kinds; the file is damaged"));
    }
    numbers[i] = static_cast<float>(number);
  }
}

}  // namespace caffe::data
