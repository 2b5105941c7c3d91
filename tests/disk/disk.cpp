// A disk that fails on demand. Preloaded (LD_PRELOAD) into any program, it counts the operations of
// the program and its libraries (HDF5, LMDB) on files below one folder, records each operation with
// its data, and can let one fail or end the process there, as a full disk or a killed job would.
// The counterpart tests/smoke/simulated_disk.py reads the records.
//
//   CAFFE_DISK_FOLDER  the folder that is watched
//   CAFFE_DISK_FOLDER  the watched folder
//   CAFFE_DISK_LOG     the file that the operations are written to; not in the folder
//   CAFFE_DISK_FAULT   KIND:NUMBER:WHAT, none by default. KIND is one of those below, or "any";
//                      NUMBER counts from 1, and "3+" is the third and all later ones. WHAT is an
//                      errno (ENOSPC, EDQUOT, EIO), "short" (half of the bytes are written), "kill"
//                      (SIGKILL before the operation), "tear" (SIGKILL within: half is written) or
//                      a signal that is raised before the operation, by its number: "signal15".
// It does not see operations through C's FILE or a duplicate of a descriptor; of a shared mapping
// it sees only what msync() writes.
#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <string>
#include <utility>

namespace {

// The C library's function with this name. Must not be called while the disk is locked: another
// thread may be loading a library that opens files.
template <typename Function>
Function* Next(const char* name) {
  return reinterpret_cast<Function*>(::dlsym(RTLD_NEXT, name));
}

std::string Environment(const char* name) {
  const char* text = std::getenv(name);
  return text ? text : "";
}

struct Fault {
  std::string kind, what;
  long number = 0;
  bool stays = false;

  // `text` is for example "write:3+:ENOSPC".
  explicit Fault(const std::string& text) {
    const size_t first = text.find(':'), last = text.rfind(':');
    if (first == last) return;
    kind = text.substr(0, first);
    what = text.substr(last + 1);
    number = std::atol(text.c_str() + first + 1);
    stays = text[last - 1] == '+';
  }

  // 0 if the fault is not a signal.
  int signal() const { return what.rfind("signal", 0) == 0 ? std::atoi(what.c_str() + 6) : 0; }

  int error() const {
    if (what == "ENOSPC") return ENOSPC;
    if (what == "EDQUOT") return EDQUOT;
    return EIO;
  }
};

// The file of a descriptor of the program, if it is below the folder.
struct Opened {
  std::string path;  // relative to the folder
  bool is_synchronous = false;
};

struct Mapping {
  size_t bytes;
  int descriptor;
  off_t offset;
};

class Disk {
 public:
  static Disk& Get() {
    static Disk* const disk = new Disk;  // in use until the process ends
    return *disk;
  }

  // The lock makes operations appear in the log in their order.
  std::unique_lock<std::recursive_mutex> Lock() {
    return std::unique_lock<std::recursive_mutex>(mutex_);
  }

  // A path relative to the folder; empty if it is elsewhere.
  std::string PathOf(int folder, const char* name) const {
    if (folder_.empty() || name == nullptr) return "";
    std::string path = name;
    const std::string own = "/proc/self/fd/";
    if (path.rfind(own, 0) == 0) {
      path = Target(path);
    } else if (path[0] != '/') {
      path =
          Target(folder == AT_FDCWD ? "/proc/self/cwd" : own + std::to_string(folder)) + "/" + path;
    }
    return Below(Normal(path));
  }

  // Counts the operation and applies the fault. Returns false with errno if it has failed.
  bool Begin(const char* kind, size_t bytes = 0, size_t* possible = nullptr) {
    ++counts_[kind];
    ++counts_["any"];
    const auto count = counts_.find(fault_.kind);
    const bool is_meant = fault_.kind == "any" || fault_.kind == kind;
    const bool is_hit =
        is_meant && count != counts_.end() &&
        (count->second == fault_.number || (fault_.stays && count->second > fault_.number));
    if (!is_hit) return true;
    Log("fault\t" + std::string(kind) + "\n");
    if (fault_.what == "kill") Kill();
    if (fault_.signal() != 0) return ::raise(fault_.signal()) == 0;  // it goes on if it survives
    if (possible != nullptr && bytes > 1 && (fault_.what == "short" || fault_.what == "tear")) {
      *possible = bytes / 2;
      return true;
    }
    if (fault_.what == "tear") Kill();
    errno = fault_.what == "short" ? ENOSPC : fault_.error();
    return false;
  }

  bool Tears() const { return fault_.what == "tear"; }
  [[noreturn]] static void Kill() {
    ::kill(::getpid(), SIGKILL);
    std::abort();
  }

  void Log(const std::string& line, const void* data = nullptr, size_t bytes = 0) {
    const int error = errno;
    if (log_ < 0) {
      log_ = real_open(AT_FDCWD, Environment("CAFFE_DISK_LOG").c_str(),
                       O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    }
    Put(line.data(), line.size());
    if (bytes > 0) Put(static_cast<const char*>(data), bytes);
    errno = error;
  }

  int (*const real_open)(int, const char*, int,
                         ...) = Next<int(int, const char*, int, ...)>("openat");
  ssize_t (*const real_write)(int, const void*, size_t) = Next<decltype(::write)>("write");
  ssize_t (*const real_write_at)(int, const void*, size_t,
                                 off_t) = Next<decltype(::pwrite)>("pwrite");
  std::map<int, Opened> opened;
  std::map<char*, Mapping> mappings;

 private:
  Disk()
      : folder_(Normal(Environment("CAFFE_DISK_FOLDER"))),
        fault_(Environment("CAFFE_DISK_FAULT")) {}

  void Put(const char* data, size_t bytes) const {
    while (bytes > 0) {
      const ssize_t count = real_write(log_, data, bytes);
      if (count <= 0) std::abort();
      data += count;
      bytes -= static_cast<size_t>(count);
    }
  }

  static std::string Target(const std::string& link) {
    char target[4096];
    const ssize_t size = ::readlink(link.c_str(), target, sizeof(target));
    return size > 0 ? std::string(target, static_cast<size_t>(size)) : "";
  }

  // The path without "//", "." and a slash at the end; the tests use no ".." in their folders.
  static std::string Normal(const std::string& path) {
    std::string normal;
    size_t begin = 0;
    while (begin < path.size()) {
      const size_t end = std::min(path.find('/', begin), path.size());
      const std::string part = path.substr(begin, end - begin);
      if (!part.empty() && part != ".") normal += "/" + part;
      begin = end + 1;
    }
    return normal;
  }

  std::string Below(const std::string& path) const {
    if (path == folder_) return ".";
    return path.rfind(folder_ + "/", 0) == 0 ? path.substr(folder_.size() + 1) : "";
  }

  const std::string folder_;
  const Fault fault_;
  std::recursive_mutex mutex_;
  std::map<std::string, long> counts_;
  int log_ = -1;
};

std::string Number(long long number) {
  return "\t" + std::to_string(number);
}

int Open(int folder, const char* name, int flags, mode_t mode) {
  Disk& disk = Disk::Get();
  const auto lock = disk.Lock();
  const std::string path = disk.PathOf(folder, name);
  if (path.empty()) {
    const int descriptor = disk.real_open(folder, name, flags, mode);
    disk.opened.erase(descriptor);
    return descriptor;
  }
  const bool changes = (flags & (O_CREAT | O_TRUNC)) != 0 && (flags & O_PATH) == 0;
  struct stat status;
  const bool exists = ::fstatat(folder, name, &status, 0) == 0;
  if (changes && !disk.Begin("open")) return -1;
  const int descriptor = disk.real_open(folder, name, flags, mode);
  if (descriptor < 0) return descriptor;
  disk.opened.erase(descriptor);
  const bool is_folder = ::fstat(descriptor, &status) == 0 && S_ISDIR(status.st_mode);
  if ((flags & O_ACCMODE) == O_RDONLY && !is_folder) return descriptor;
  disk.opened[descriptor] = {path, (flags & (O_DSYNC | O_SYNC)) != 0};
  const char* what = is_folder ? "folder" : !exists ? "create" : flags & O_TRUNC ? "empty" : "open";
  disk.Log(what + Number(descriptor) + "\t" + path + "\n");
  return descriptor;
}

// Writes at `offset`, or at the descriptor's own position if it is negative.
ssize_t Write(int descriptor, const char* data, size_t bytes, off_t offset) {
  Disk& disk = Disk::Get();
  const auto lock = disk.Lock();
  const auto act = [&](size_t count) {
    return offset < 0 ? disk.real_write(descriptor, data, count)
                      : disk.real_write_at(descriptor, data, count, offset);
  };
  const auto file = disk.opened.find(descriptor);
  if (file == disk.opened.end()) return act(bytes);
  size_t possible = bytes;
  if (!disk.Begin("write", bytes, &possible)) return -1;
  const bool appends = (::fcntl(descriptor, F_GETFL) & O_APPEND) != 0;
  const off_t place = offset >= 0 ? offset : ::lseek(descriptor, 0, appends ? SEEK_END : SEEK_CUR);
  const ssize_t written = act(possible);
  if (written > 0) {
    disk.Log((file->second.is_synchronous ? "write-through" : "write") + Number(descriptor) +
                 Number(place) + Number(written) + "\n",
             data, static_cast<size_t>(written));
  }
  if (possible < bytes && disk.Tears()) Disk::Kill();
  return written;
}

ssize_t WriteParts(int descriptor, const struct iovec* parts, int count, off_t offset) {
  std::string bytes;
  for (int i = 0; i < count; ++i) {
    bytes.append(static_cast<const char*>(parts[i].iov_base), parts[i].iov_len);
  }
  return Write(descriptor, bytes.data(), bytes.size(), offset);
}

// An operation on a descriptor without data: "fsync", "truncate", "close".
template <typename Act>
int OnDescriptor(const char* kind, int descriptor, const std::string& detail, const Act& act) {
  Disk& disk = Disk::Get();
  const auto lock = disk.Lock();
  if (disk.opened.find(descriptor) == disk.opened.end()) return act();
  if (!disk.Begin(kind)) return -1;
  const int result = act();
  if (result == 0) disk.Log(kind + Number(descriptor) + detail + "\n");
  return result;
}

// An operation on a name.
template <typename Act>
int OnName(const char* kind, int folder, const char* name, const Act& act) {
  Disk& disk = Disk::Get();
  const auto lock = disk.Lock();
  const std::string path = disk.PathOf(folder, name);
  if (path.empty()) return act();
  if (!disk.Begin(kind)) return -1;
  const int result = act();
  if (result == 0) disk.Log(std::string(kind) + "\t" + path + "\n");
  return result;
}

template <typename Act>
int Rename(int from_folder, const char* from, int to_folder, const char* to, const Act& act) {
  Disk& disk = Disk::Get();
  const auto lock = disk.Lock();
  const std::string old_path = disk.PathOf(from_folder, from);
  const std::string new_path = disk.PathOf(to_folder, to);
  if (old_path.empty() || new_path.empty()) return act();
  if (!disk.Begin("rename")) return -1;
  const int result = act();
  if (result == 0) disk.Log("rename\t" + old_path + "\t" + new_path + "\n");
  return result;
}

mode_t ModeOf(int flags, va_list arguments) {
  return flags & (O_CREAT | O_TMPFILE) ? static_cast<mode_t>(va_arg(arguments, int)) : 0;
}

}  // namespace

// The names that programs call; those with 64 and _2 are the same functions for 64-bit files and
// for checked builds.
extern "C" {

int open(const char* path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = ModeOf(flags, arguments);
  va_end(arguments);
  return Open(AT_FDCWD, path, flags, mode);
}
int open64(const char* path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = ModeOf(flags, arguments);
  va_end(arguments);
  return Open(AT_FDCWD, path, flags, mode);
}
int openat(int folder, const char* path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = ModeOf(flags, arguments);
  va_end(arguments);
  return Open(folder, path, flags, mode);
}
int openat64(int folder, const char* path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = ModeOf(flags, arguments);
  va_end(arguments);
  return Open(folder, path, flags, mode);
}
int __open_2(const char* path, int flags) {
  return Open(AT_FDCWD, path, flags, 0);
}
int __open64_2(const char* path, int flags) {
  return Open(AT_FDCWD, path, flags, 0);
}
int __openat_2(int folder, const char* path, int flags) {
  return Open(folder, path, flags, 0);
}
int __openat64_2(int folder, const char* path, int flags) {
  return Open(folder, path, flags, 0);
}
int creat(const char* path, mode_t mode) {
  return Open(AT_FDCWD, path, O_CREAT | O_WRONLY | O_TRUNC, mode);
}
int creat64(const char* path, mode_t mode) {
  return Open(AT_FDCWD, path, O_CREAT | O_WRONLY | O_TRUNC, mode);
}

ssize_t write(int descriptor, const void* data, size_t bytes) {
  return Write(descriptor, static_cast<const char*>(data), bytes, -1);
}
ssize_t pwrite(int descriptor, const void* data, size_t bytes, off_t offset) {
  return Write(descriptor, static_cast<const char*>(data), bytes, offset);
}
ssize_t pwrite64(int descriptor, const void* data, size_t bytes, off64_t offset) {
  return Write(descriptor, static_cast<const char*>(data), bytes, offset);
}
ssize_t writev(int descriptor, const struct iovec* parts, int count) {
  return WriteParts(descriptor, parts, count, -1);
}
ssize_t pwritev(int descriptor, const struct iovec* parts, int count, off_t offset) {
  return WriteParts(descriptor, parts, count, offset);
}
ssize_t pwritev64(int descriptor, const struct iovec* parts, int count, off64_t offset) {
  return WriteParts(descriptor, parts, count, offset);
}

ssize_t pwritev2(int descriptor, const struct iovec* parts, int count, off_t offset, int) {
  return WriteParts(descriptor, parts, count, offset);
}
ssize_t pwritev64v2(int descriptor, const struct iovec* parts, int count, off64_t offset, int) {
  return WriteParts(descriptor, parts, count, offset);
}

int ftruncate(int descriptor, off_t length) noexcept {
  static const auto real = Next<int(int, off_t)>("ftruncate");
  return OnDescriptor("truncate", descriptor, Number(length),
                      [&] { return real(descriptor, length); });
}
int ftruncate64(int descriptor, off64_t length) noexcept {
  return ftruncate(descriptor, length);
}

// The simulated disk has no cache to wait for: fsync is only recorded.
int fsync(int descriptor) {
  return OnDescriptor("fsync", descriptor, "", [] { return 0; });
}
int fdatasync(int descriptor) {
  return fsync(descriptor);
}

void* mmap(void* address, size_t bytes, int protection, int flags, int descriptor,
           off_t offset) noexcept {
  static const auto real = Next<void*(void*, size_t, int, int, int, off_t)>("mmap");
  void* const memory = real(address, bytes, protection, flags, descriptor, offset);
  if (descriptor < 0 || (flags & MAP_SHARED) == 0 || (protection & PROT_WRITE) == 0 ||
      memory == MAP_FAILED) {
    return memory;
  }
  Disk& disk = Disk::Get();
  const auto lock = disk.Lock();
  if (disk.opened.count(descriptor) > 0) {
    disk.mappings[static_cast<char*>(memory)] = {bytes, descriptor, offset};
  }
  return memory;
}
void* mmap64(void* address, size_t bytes, int protection, int flags, int descriptor,
             off64_t offset) noexcept {
  return mmap(address, bytes, protection, flags, descriptor, offset);
}

// Writes the part of the mapping and waits for the disk, as if by pwrite() and fsync().
int msync(void* address, size_t bytes, int flags) {
  static const auto real = Next<int(void*, size_t, int)>("msync");
  Disk& disk = Disk::Get();
  const auto lock = disk.Lock();
  char* const begin = static_cast<char*>(address);
  auto mapping = disk.mappings.upper_bound(begin);
  if (mapping == disk.mappings.begin()) return real(address, bytes, flags);
  --mapping;
  const auto& [memory, mapped] = *mapping;
  if (begin >= memory + mapped.bytes) return real(address, bytes, flags);
  struct stat status;
  if (!disk.Begin("fsync") || ::fstat(mapped.descriptor, &status) != 0) return -1;
  const int result = real(address, bytes, flags);
  const off_t place = mapped.offset + (begin - memory);
  const off_t count = std::min<off_t>(static_cast<off_t>(bytes), status.st_size - place);
  if (result != 0 || count <= 0) return result;
  disk.Log("msync" + Number(mapped.descriptor) + Number(place) + Number(count) + "\n", address,
           static_cast<size_t>(count));
  return 0;
}

int close(int descriptor) {
  static const auto real = Next<int(int)>("close");
  bool is_closed = false;
  const int result = OnDescriptor("close", descriptor, "", [&] {
    is_closed = true;
    return real(descriptor);
  });
  // The kernel also closes when it reports an error.
  const int error = errno;
  if (!is_closed) real(descriptor);
  Disk& disk = Disk::Get();
  const auto lock = disk.Lock();
  disk.opened.erase(descriptor);
  errno = error;
  return result;
}

int closedir(DIR* folder) {
  static const auto real = Next<int(DIR*)>("closedir");
  Disk& disk = Disk::Get();
  const auto lock = disk.Lock();
  disk.opened.erase(::dirfd(folder));
  return real(folder);
}

int rename(const char* from, const char* to) noexcept {
  static const auto real = Next<int(const char*, const char*)>("rename");
  return Rename(AT_FDCWD, from, AT_FDCWD, to, [&] { return real(from, to); });
}
int renameat(int from_folder, const char* from, int to_folder, const char* to) noexcept {
  static const auto real = Next<int(int, const char*, int, const char*)>("renameat");
  return Rename(from_folder, from, to_folder, to,
                [&] { return real(from_folder, from, to_folder, to); });
}

int unlink(const char* path) noexcept {
  static const auto real = Next<int(const char*)>("unlink");
  return OnName("unlink", AT_FDCWD, path, [&] { return real(path); });
}
int rmdir(const char* path) noexcept {
  static const auto real = Next<int(const char*)>("rmdir");
  return OnName("rmdir", AT_FDCWD, path, [&] { return real(path); });
}
int unlinkat(int folder, const char* path, int flags) noexcept {
  static const auto real = Next<int(int, const char*, int)>("unlinkat");
  return OnName(flags & AT_REMOVEDIR ? "rmdir" : "unlink", folder, path,
                [&] { return real(folder, path, flags); });
}
int remove(const char* path) noexcept {
  struct stat status;
  const bool is_folder = ::lstat(path, &status) == 0 && S_ISDIR(status.st_mode);
  return is_folder ? rmdir(path) : unlink(path);
}
int mkdir(const char* path, mode_t mode) noexcept {
  static const auto real = Next<int(const char*, mode_t)>("mkdir");
  return OnName("mkdir", AT_FDCWD, path, [&] { return real(path, mode); });
}
int mkdirat(int folder, const char* path, mode_t mode) noexcept {
  static const auto real = Next<int(int, const char*, mode_t)>("mkdirat");
  return OnName("mkdir", folder, path, [&] { return real(folder, path, mode); });
}

}  // extern "C"
