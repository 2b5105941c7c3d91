#include "tools/caffe/fetch_file.hpp"

#include <curl/curl.h>
#include <fcntl.h>
#include <glog/logging.h>
#include <openssl/evp.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>

#include "caffe/error.hpp"
#include "caffe/io/atomic_file.hpp"
#include "tools/caffe/progress.hpp"

namespace caffe::tools {
namespace {

namespace fs = std::filesystem;

constexpr long kConnectSeconds = 30;
// Largest file of weights accepted, whatever the server sends.
constexpr uint64_t kMostBytes = uint64_t{16} << 30;
constexpr long kLeastBytesPerSecond = 100, kSlowSeconds = 60;  // slower for this long: give up

struct Close {
  void operator()(std::FILE* file) const { std::fclose(file); }
  void operator()(CURL* curl) const { curl_easy_cleanup(curl); }
  void operator()(EVP_MD_CTX* context) const { EVP_MD_CTX_free(context); }
};
using File = std::unique_ptr<std::FILE, Close>;

std::string ChecksumOf(const std::string& path, Checksum::Kind kind) {
  const File file(std::fopen(path.c_str(), "rb"));
  if (!file) throw IoError(StrCat(path, ": cannot open: ", ErrnoText(errno)));
  const std::unique_ptr<EVP_MD_CTX, Close> context(EVP_MD_CTX_new());
  EVP_DigestInit_ex(context.get(), EVP_sha1(), nullptr);
  if (kind == Checksum::GIT_BLOB) {
    const std::string head = StrCat("blob ", fs::file_size(path));
    EVP_DigestUpdate(context.get(), head.c_str(), head.size() + 1);  // with its terminating zero
  }
  char block[1 << 16];
  for (size_t count; (count = std::fread(block, 1, sizeof block, file.get())) > 0;) {
    EVP_DigestUpdate(context.get(), block, count);
  }
  if (std::ferror(file.get()) != 0) throw IoError(path + ": cannot read");
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned size = 0;
  EVP_DigestFinal_ex(context.get(), digest, &size);
  std::string text;
  for (unsigned i = 0; i < size; ++i) {
    char digits[3];
    std::snprintf(digits, sizeof digits, "%02x", digest[i]);
    text += digits;
  }
  return text;
}

// Opens for append. O_NOFOLLOW: somebody else may have put a link there.
std::FILE* OpenToAppend(const std::string& path) {
  const int descriptor =
      ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0666);
  return descriptor < 0 ? nullptr : ::fdopen(descriptor, "ab");
}

// A partial download, locked so that only one process writes it.
class PartFile {
 public:
  explicit PartFile(const std::string& path) : path_(path), file_(OpenToAppend(path)) {
    if (!file_) throw IoError(StrCat(path_, ": cannot create: ", ErrnoText(errno)));
    if (flock(fileno(file_.get()), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
      throw IoError(path_ + ": another process is downloading it; wait for it");
    }
  }
  // An empty file is not worth keeping.
  ~PartFile() {
    if (size() == 0) Remove();
  }

  uint64_t size() const {
    struct stat status {};
    fstat(fileno(file_.get()), &status);
    return static_cast<uint64_t>(status.st_size);
  }
  bool Append(const char* bytes, size_t count) {
    if (std::fwrite(bytes, 1, count, file_.get()) == count) return true;
    error_ = errno;
    return false;
  }
  bool Flush() {
    if (std::fflush(file_.get()) == 0) return true;
    error_ = errno;
    return false;
  }
  void Clear() {
    Flush();
    if (ftruncate(fileno(file_.get()), 0) != 0) {
      throw IoError(StrCat(path_, ": cannot shorten: ", ErrnoText(errno)));
    }
  }
  void Remove() { unlink(path_.c_str()); }
  void Rename(const std::string& name) {
    if (fsync(fileno(file_.get())) != 0 || rename(path_.c_str(), name.c_str()) != 0) {
      throw IoError(StrCat(name, ": cannot write: ", ErrnoText(errno)));
    }
  }
  int error() const { return error_; }

 private:
  const std::string path_;
  const File file_;
  int error_ = 0;
};

// One request, which appends to a part file.
class Request {
 public:
  Request(const std::string& url, PartFile* part)
      : url_(url), part_(part), first_(part->size()), curl_(curl_easy_init()) {
    if (!curl_) throw IoError("cannot start libcurl");
    Set(CURLOPT_URL, url.c_str());
    Set(CURLOPT_PROTOCOLS_STR, "http,https");
    Set(CURLOPT_FOLLOWLOCATION, 1L);
    Set(CURLOPT_FAILONERROR, 1L);
    Set(CURLOPT_NOSIGNAL, 1L);
    Set(CURLOPT_CONNECTTIMEOUT, kConnectSeconds);
    Set(CURLOPT_LOW_SPEED_LIMIT, kLeastBytesPerSecond);
    Set(CURLOPT_LOW_SPEED_TIME, kSlowSeconds);
    Set(CURLOPT_RESUME_FROM_LARGE, static_cast<curl_off_t>(first_));
    Set(CURLOPT_MAXFILESIZE_LARGE, static_cast<curl_off_t>(kMostBytes));
    Set(CURLOPT_ERRORBUFFER, text_);
    Set(CURLOPT_WRITEFUNCTION, &Request::Write);
    Set(CURLOPT_WRITEDATA, this);
  }

  // Completes the part file. Throws IoError.
  void Run() {
    CURLcode code = curl_easy_perform(curl_.get());
    if (!part_->Flush() && code == CURLE_OK) code = CURLE_WRITE_ERROR;
    progress_.reset();
    if (code == CURLE_OK && Status() == 416) code = CURLE_RANGE_ERROR;  // libcurl accepts it
    if (code != CURLE_OK) Fail(code);
  }

  // True if the server cannot resume at the end of the part file.
  bool CannotResume() const { return first_ > 0 && cannot_resume_; }

 private:
  template <typename Value>
  void Set(CURLoption option, Value value) {
    curl_easy_setopt(curl_.get(), option, value);
  }

  static size_t Write(char* bytes, size_t size, size_t count, void* self) {
    return static_cast<Request*>(self)->Append(bytes, size * count);
  }
  size_t Append(const char* bytes, size_t count) {
    if (!progress_) progress_.emplace("bytes", TotalBytes(), first_);
    is_too_long_ = part_->size() + count > kMostBytes;
    if (is_too_long_ || !part_->Append(bytes, count)) return 0;
    progress_->Add(count);
    return count;
  }
  // 0 if unknown.
  uint64_t TotalBytes() const {
    curl_off_t rest = -1;
    curl_easy_getinfo(curl_.get(), CURLINFO_CONTENT_LENGTH_DOWNLOAD_T, &rest);
    return rest < 0 ? 0 : first_ + static_cast<uint64_t>(rest);
  }

  long Status() const {
    long status = 0;
    curl_easy_getinfo(curl_.get(), CURLINFO_RESPONSE_CODE, &status);
    return status;
  }

  [[noreturn]] void Fail(CURLcode code) {
    const long status = Status();
    cannot_resume_ = code == CURLE_RANGE_ERROR || status == 416;
    const std::string reason = text_[0] != '\0' ? text_ : curl_easy_strerror(code);
    switch (code) {
      case CURLE_COULDNT_RESOLVE_HOST:
      case CURLE_COULDNT_RESOLVE_PROXY:
      case CURLE_COULDNT_CONNECT:
        throw IoError(StrCat(url_, ": cannot reach the server: ", reason,
                             "; is this machine offline, or behind a proxy (http_proxy)?"));
      case CURLE_HTTP_RETURNED_ERROR:
        throw IoError(StrCat(url_, ": the server answers with status ", status,
                             "; the address in the model's README.md may be out of date"));
      case CURLE_FILESIZE_EXCEEDED:
      case CURLE_WRITE_ERROR:
        if (is_too_long_ || code == CURLE_FILESIZE_EXCEEDED) {
          part_->Clear();
          throw IoError(StrCat(url_, ": the server sends more than ", kMostBytes,
                               " bytes; what came was removed"));
        }
        throw IoError(StrCat(url_, ": cannot write what arrives: ", ErrnoText(part_->error()),
                             "; free space and run the command again"));
      default:
        throw IoError(StrCat(url_, ": the download broke off after ", part_->size(), " of ",
                             TotalBytes(), " bytes: ", reason,
                             "; run the command again to go on from there"));
    }
  }

  const std::string url_;
  PartFile* const part_;
  const uint64_t first_;  // bytes of an earlier download
  const std::unique_ptr<CURL, Close> curl_;
  std::optional<Progress> progress_;
  char text_[CURL_ERROR_SIZE] = "";
  bool cannot_resume_ = false, is_too_long_ = false;
};

void Download(const std::string& url, PartFile* part) {
  Request request(url, part);
  try {
    request.Run();
  } catch (const IoError&) {
    if (!request.CannotResume()) throw;
    part->Clear();
    Request(url, part).Run();
  }
}

void FetchFrom(const std::string& url, const Checksum& wanted, const std::string& path) {
  const std::string part_path = path + ".part";
  PartFile part(part_path);
  if (part.size() == 0 || ChecksumOf(part_path, wanted.kind) != wanted.digits) Download(url, &part);
  const std::string found = ChecksumOf(part_path, wanted.kind);
  if (found != wanted.digits) {
    part.Remove();
    throw IoError(StrCat(url, ": what was downloaded has ", wanted.name(), " ", found,
                         " in place of ", wanted.digits,
                         "; it was removed. Run the command again; if the sum stays, the file "
                         "there is not the published one"));
  }
  part.Rename(path);
}

}  // namespace

bool FetchFile(const std::vector<std::string>& urls, const Checksum& wanted,
               const std::string& path) {
  for (const std::string& one : {path, path + ".part"}) RequireNoPipe(one);
  if (fs::exists(path)) {
    const std::string found = ChecksumOf(path, wanted.kind);
    if (found == wanted.digits) return false;
    throw IoError(StrCat(path, ": is there with ", wanted.name(), " ", found, ", but ", urls.at(0),
                         " has ", wanted.digits, "; remove the file to download it again"));
  }
  for (size_t i = 0;; ++i) {
    try {
      FetchFrom(urls.at(i), wanted, path);
      return true;
    } catch (const IoError& error) {
      if (i + 1 == urls.size()) throw;
      LOG(WARNING) << error.what() << "; trying " << urls[i + 1];
    }
  }
}

}  // namespace caffe::tools
