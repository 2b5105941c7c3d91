#include "caffe/distributed/rendezvous/secret.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <system_error>

#include "caffe/core/file_descriptor.hpp"
#include "caffe/core/paths.hpp"
#include "caffe/core/printable.hpp"
#include "caffe/distributed/rendezvous/proof.hpp"
#include "caffe/error.hpp"

namespace caffe {
namespace {

constexpr char kAdvice[] =
    "; or give all ranks the same text in the environment variable CAFFE_SECRET";

[[noreturn]] void Throw(const std::string& path, const std::string& why) {
  throw IoError(StrCat(PrintableLines(path), ": ", why, kAdvice));
}

std::string ErrorText() {
  return std::generic_category().message(errno);
}

std::string AsHexadecimal(const std::string& bytes) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (const unsigned char one : bytes) {
    text += kDigits[one >> 4];
    text += kDigits[one & 15];
  }
  return text;
}

// If several ranks make the file at the same time, the first one's stays: link() replaces nothing.
void Make(const std::string& path) {
  std::error_code error;
  std::filesystem::create_directories(std::filesystem::path(path).parent_path(), error);
  std::string temporary = path + ".XXXXXX";
  const FileDescriptor file(::mkstemp(temporary.data()));  // with mode 0600
  if (!file) Throw(path, StrCat("cannot be made: ", ErrorText()));
  const std::string secret = AsHexadecimal(MakeNonce()) + "\n";
  const bool is_written =
      ::write(file.get(), secret.data(), secret.size()) == static_cast<ssize_t>(secret.size()) &&
      ::fsync(file.get()) == 0;
  const bool is_there =
      is_written && (::link(temporary.c_str(), path.c_str()) == 0 || errno == EEXIST);
  const std::string why = is_there ? "" : ErrorText();
  ::unlink(temporary.c_str());
  if (!is_there) Throw(path, StrCat("cannot be made: ", why));
}

}  // namespace

std::string SecretInFile(const std::string& path) {
  if (::access(path.c_str(), F_OK) != 0) Make(path);
  const FileDescriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  struct stat status {};
  if (!file || ::fstat(file.get(), &status) != 0) {
    Throw(path, StrCat("cannot be read: ", ErrorText()));
  }
  if (!S_ISREG(status.st_mode)) Throw(path, "is not a file");
  if (status.st_uid != ::geteuid()) Throw(path, "belongs to another user");
  if ((status.st_mode & 077) != 0) Throw(path, "can be read by others; make it yours (chmod 600)");
  std::array<char, 1024> bytes;
  const ssize_t size = ::read(file.get(), bytes.data(), bytes.size());
  if (size <= 0) Throw(path, "is empty; remove it, so that a new one is made");
  std::string secret(bytes.data(), static_cast<size_t>(size));
  while (!secret.empty() && secret.back() == '\n') secret.pop_back();
  if (secret.empty()) Throw(path, "is empty; remove it, so that a new one is made");
  return secret;
}

std::string SecretOfUser() {
  const char* const given = std::getenv("CAFFE_SECRET");
  if (given != nullptr && given[0] != '\0') return given;
  const std::string folder = CacheFolder();
  Require(!folder.empty(),
          "there is no secret for the ranks of this run, and no HOME to keep one; set CAFFE_SECRET "
          "to the same text for all of them");
  return SecretInFile(folder + "/cortado/secret");
}

}  // namespace caffe
