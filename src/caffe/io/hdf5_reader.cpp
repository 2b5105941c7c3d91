#include <fcntl.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <mutex>
#include <utility>

#include "caffe/core/module.hpp"
#include "caffe/decode_limit.hpp"
#include "caffe/error.hpp"
#include "caffe/io/atomic_file.hpp"
#include "caffe/io/hdf5_files.hpp"
#include "caffe/io/hdf5_messages.hpp"
#include "caffe/io/open_error.hpp"

namespace caffe {
namespace {

// Starts caffe_hdf5_reader on a file, with `socket` as its standard input. Returns errno.
int Spawn(const std::string& program, const std::string& path, int socket, pid_t* pid) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, socket, STDIN_FILENO);
  // A sanitizer's report of a crash would be confusing.
  posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  // Signals for the training process must not reach its reader, which ends when its socket is
  // closed.
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t signals;
  sigfillset(&signals);
  posix_spawnattr_setsigdefault(&attributes, &signals);
  sigemptyset(&signals);
  for (const int signal : {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2}) {
    sigaddset(&signals, signal);
  }
  posix_spawnattr_setsigmask(&attributes, &signals);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK);

  std::string name = program, file = path, limit = std::to_string(MaxDecodedMb());
  const std::array<char*, 4> arguments = {name.data(), file.data(), limit.data(), nullptr};
  const int error =
      posix_spawn(pid, program.c_str(), &actions, &attributes, arguments.data(), environ);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  return error;
}

}  // namespace

// The client side of a caffe_hdf5_reader.
struct Hdf5Reader::Impl {
  explicit Impl(const std::string& file) : path(file) {
    std::array<int, 2> sockets;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets.data()) != 0) {
      throw IoError(StrCat(path, ": cannot open: ", ErrnoText(errno)));
    }
    socket = sockets[0];
    const std::string program = BesideLibrary("caffe_hdf5_reader");
    const int error = Spawn(program, path, sockets[1], &pid);
    close(sockets[1]);
    if (error != 0) {
      close(socket);
      throw IoError(StrCat(path, ": cannot be read, because ", program, " cannot be started: ",
                           ErrnoText(error), "; build or install all of Cortado"));
    }
  }
  ~Impl() { End(); }

  // Ends the reader if necessary, and returns its status as in waitpid().
  int End() {
    close(std::exchange(socket, -1));
    int status = 0;
    if (pid > 0) {
      while (waitpid(pid, &status, 0) < 0 && errno == EINTR) continue;
    }
    pid = -1;
    return status;
  }

  [[noreturn]] void ThrowDamaged() {
    const int status = End();
    const int signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    if (signal == SIGKILL) {
      throw IoError(StrCat(
          path,
          ": cannot be read: the process that reads it was killed, as Linux does when memory "
          "runs short; the file need not be damaged"));
    }
    const std::string what =
        signal == SIGPROF ? "does not come to an end with it" : "crashes on it";
    const std::string name = signal != 0 ? StrCat(" (", strsignal(signal), ")") : "";
    throw IoError(StrCat(path, ": damaged: the HDF5 library ", what, name,
                         "; copy or create the file again"));
  }

  // Passes the parts of the answer to `take`; throws if the answer is an error.
  template <typename Take>
  void Receive(const Take& take) {
    for (Hdf5Message message; socket >= 0 && ReceiveMessage(socket, &message);) {
      const auto kind = static_cast<Hdf5Answer>(message.kind);
      if (kind == Hdf5Answer::kEnd) return;
      if (kind == Hdf5Answer::kIoError) throw IoError(message.body);
      if (kind == Hdf5Answer::kInvalidArgument) throw InvalidArgument(message.body);
      take(kind, message.body);
    }
    ThrowDamaged();
  }

  template <typename Take>
  void Ask(Hdf5Question question, const std::string& name, const Take& take) {
    const std::lock_guard lock(mutex);
    // If sending fails, no answer arrives either, so the result need not be checked.
    SendMessage(socket, static_cast<uint8_t>(question), std::as_bytes(std::span(name)));
    Receive(take);
  }

  template <typename T>
  std::vector<T> AskForValues(Hdf5Question question, const std::string& name) {
    std::vector<T> values;
    Ask(question, name, [&](Hdf5Answer kind, const std::string& body) {
      if (kind == Hdf5Answer::kBytes) {
        uint64_t bytes = 0;
        std::memcpy(&bytes, body.data(), std::min(sizeof(bytes), body.size()));
        return values.reserve(bytes / sizeof(T));
      }
      const size_t before = values.size();
      values.resize(before + body.size() / sizeof(T));
      std::memcpy(values.data() + before, body.data(), body.size() / sizeof(T) * sizeof(T));
    });
    return values;
  }

  std::vector<std::string> AskForTexts(Hdf5Question question, const std::string& name) {
    std::vector<std::string> texts;
    Ask(question, name, [&](Hdf5Answer, const std::string& body) { texts.push_back(body); });
    return texts;
  }

  const std::string path;
  std::mutex mutex;  // guards the exchange with the reader
  int socket = -1;
  pid_t pid = -1;
};

Hdf5Reader::Hdf5Reader(const std::string& path) {
#ifndef CAFFE_HDF5
  throw Unsupported(path + ": this build has no HDF5; configure with -DCAFFE_HDF5=ON");
#endif
  // The library's own text for a missing file does not say that it is missing.
  if (access(path.c_str(), R_OK) != 0) throw OpenError(path, errno);
  RequireNoPipe(path);
  impl_ = std::make_unique<Impl>(path);
  impl_->Receive([](Hdf5Answer, const std::string&) {});  // throws if it could not be opened
}

Hdf5Reader::~Hdf5Reader() = default;

bool Hdf5Reader::Contains(const std::string& name) const {
  return impl_->AskForValues<uint8_t>(Hdf5Question::kContains, name).at(0) != 0;
}

bool Hdf5Reader::IsGroup(const std::string& name) const {
  return impl_->AskForValues<uint8_t>(Hdf5Question::kIsGroup, name).at(0) != 0;
}

std::vector<std::string> Hdf5Reader::LinksOf(const std::string& group) const {
  return impl_->AskForTexts(Hdf5Question::kLinksOf, group);
}

Shape Hdf5Reader::ShapeOf(const std::string& dataset) const {
  return Shape(impl_->AskForValues<int64_t>(Hdf5Question::kShapeOf, dataset));
}

std::vector<float> Hdf5Reader::ReadFloats(const std::string& dataset) const {
  return impl_->AskForValues<float>(Hdf5Question::kReadFloats, dataset);
}

std::vector<double> Hdf5Reader::ReadDoubles(const std::string& dataset) const {
  return impl_->AskForValues<double>(Hdf5Question::kReadDoubles, dataset);
}

int64_t Hdf5Reader::ReadInteger(const std::string& dataset) const {
  const auto values = impl_->AskForValues<int64_t>(Hdf5Question::kReadIntegers, dataset);
  if (values.size() != 1) {
    throw IoError(StrCat(impl_->path, ": '", dataset, "': has ", values.size(),
                         " values; exactly 1 is expected"));
  }
  return values[0];
}

std::string Hdf5Reader::ReadString(const std::string& name) const {
  const std::vector<std::string> texts = impl_->AskForTexts(Hdf5Question::kReadString, name);
  return texts.empty() ? "" : texts[0];
}

}  // namespace caffe
