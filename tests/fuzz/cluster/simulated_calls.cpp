// The system's calls as simulated threads see them: this program's functions with these names take
// precedence over those of the system's libraries, also for libcaffe and the standard library.
// Other threads get the system's functions.
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "tests/fuzz/cluster/real_calls.hpp"
#include "tests/fuzz/cluster/simulation.hpp"

namespace {

using caffe::fuzz::kNever;
using caffe::fuzz::kSecond;
using caffe::fuzz::SimulatedDisk;
using caffe::fuzz::SimulatedNetwork;
using caffe::fuzz::Simulation;

int64_t NanosecondsOf(const timespec& time) {
  return int64_t{time.tv_sec} * kSecond + time.tv_nsec;
}

// Converts a number to the return value of a system call.
template <typename Number>
Number Result(Number number) {
  if (number >= 0) return number;
  errno = static_cast<int>(-number);
  return -1;
}

// The network of the thread that uses this descriptor, or null.
SimulatedNetwork* NetworkOf(int descriptor) {
  Simulation* const simulation = Simulation::Current();
  if (simulation == nullptr || !SimulatedNetwork::Has(descriptor)) return nullptr;
  return &simulation->network();
}

SimulatedNetwork* Entered(int descriptor) {
  SimulatedNetwork* const network = NetworkOf(descriptor);
  if (network != nullptr) Simulation::Current()->Enter();
  return network;
}

sockaddr_in AddressOf(std::pair<int, uint16_t> name) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(name.second);
  ::inet_pton(AF_INET, SimulatedNetwork::AddressOf(name.first).c_str(), &address.sin_addr);
  return address;
}

int Give(const sockaddr_in& address, sockaddr* to, socklen_t* size) {
  std::memcpy(to, &address, std::min<size_t>(*size, sizeof address));
  *size = sizeof address;
  return 0;
}

SimulatedDisk* DiskOf(const std::string& path) {
  Simulation* const simulation = Simulation::Current();
  return simulation != nullptr && simulation->disk().Has(path) ? &simulation->disk() : nullptr;
}

SimulatedDisk* DiskOf(int descriptor) {
  Simulation* const simulation = Simulation::Current();
  return simulation != nullptr && simulation->disk().Has(descriptor) ? &simulation->disk()
                                                                     : nullptr;
}

// Lets other threads run first. Returns whether the disk then has room.
bool HasRoom(SimulatedDisk* disk) {
  Simulation::Current()->Enter(Simulation::Calls::kOnDisk);
  if (disk->HasRoom()) return true;
  errno = ENOSPC;
  return false;
}

int OpenOnDisk(SimulatedDisk* disk, const char* path, int flags, mode_t mode) {
  const bool creates = (flags & O_CREAT) != 0;
  if (creates && !HasRoom(disk)) return -1;
  const int descriptor = CAFFE_REAL(open)(path, flags, mode);
  if (descriptor < 0 || (!creates && (flags & O_DIRECTORY) == 0)) return descriptor;
  disk->Opened(descriptor, path, creates, Simulation::Self().process);
  return descriptor;
}

// Between two parts, a process may be killed or the power cut.
ssize_t WriteToDisk(SimulatedDisk* disk, int descriptor, const char* bytes, size_t count) {
  if (!HasRoom(disk)) return -1;
  if (count > 1 && Simulation::Current()->random().Chance(0.5)) {
    count = 1 + Simulation::Current()->random().Next() % count;
  }
  const ssize_t written = CAFFE_REAL(write)(descriptor, bytes, count);
  if (written > 0) disk->Wrote(descriptor, bytes, static_cast<size_t>(written));
  return written;
}

}  // namespace

extern "C" {

// --- Threads.

int pthread_create(pthread_t* handle, const pthread_attr_t* attributes, void* (*work)(void*),
                   void* argument) {
  if (Simulation* const simulation = Simulation::Current()) {
    return simulation->StartThread(handle, attributes, [=] { return work(argument); });
  }
  return CAFFE_REAL(pthread_create)(handle, attributes, work, argument);
}

int pthread_join(pthread_t handle, void** result) {
  if (Simulation* const simulation = Simulation::Current()) return simulation->Join(handle, result);
  return CAFFE_REAL(pthread_join)(handle, result);
}

int pthread_mutex_lock(pthread_mutex_t* mutex) noexcept {
  Simulation* const simulation = Simulation::Current();
  if (simulation == nullptr) return CAFFE_REAL(pthread_mutex_lock)(mutex);
  if (Simulation::Self().locks == 0) simulation->Enter();
  simulation->Lock(mutex);
  return 0;
}

int pthread_mutex_unlock(pthread_mutex_t* mutex) noexcept {
  Simulation* const simulation = Simulation::Current();
  if (simulation == nullptr) return CAFFE_REAL(pthread_mutex_unlock)(mutex);
  simulation->Unlock(mutex);
  return 0;
}

int pthread_cond_wait(pthread_cond_t* condition, pthread_mutex_t* mutex) {
  if (Simulation* const simulation = Simulation::Current()) {
    simulation->AwaitCondition(condition, mutex, kNever);
    return 0;
  }
  // dlsym() would find the first version of this function, for conditions of another size.
  using Wait = int (*)(pthread_cond_t*, pthread_mutex_t*);
  static const auto real =
      reinterpret_cast<Wait>(::dlvsym(RTLD_NEXT, "pthread_cond_wait", "GLIBC_2.3.2"));
  return real(condition, mutex);
}

int pthread_cond_clockwait(pthread_cond_t* condition, pthread_mutex_t* mutex, clockid_t clock,
                           const timespec* until) {
  if (Simulation* const simulation = Simulation::Current()) {
    return simulation->AwaitCondition(condition, mutex, NanosecondsOf(*until)) ? 0 : ETIMEDOUT;
  }
  return CAFFE_REAL(pthread_cond_clockwait)(condition, mutex, clock, until);
}

int pthread_cond_signal(pthread_cond_t* condition) noexcept {
  if (Simulation* const simulation = Simulation::Current()) {
    simulation->Notify(condition, /*all=*/false);
    return 0;
  }
  using Signal = int (*)(pthread_cond_t*);
  static const auto real =
      reinterpret_cast<Signal>(::dlvsym(RTLD_NEXT, "pthread_cond_signal", "GLIBC_2.3.2"));
  return real(condition);
}

int pthread_cond_broadcast(pthread_cond_t* condition) noexcept {
  if (Simulation* const simulation = Simulation::Current()) {
    simulation->Notify(condition, /*all=*/true);
    return 0;
  }
  using Signal = int (*)(pthread_cond_t*);
  static const auto real =
      reinterpret_cast<Signal>(::dlvsym(RTLD_NEXT, "pthread_cond_broadcast", "GLIBC_2.3.2"));
  return real(condition);
}

// --- Time.

int clock_gettime(clockid_t clock, timespec* time) noexcept {
  if (Simulation* const simulation = Simulation::Current()) {
    *time = {.tv_sec = simulation->now() / kSecond, .tv_nsec = simulation->now() % kSecond};
    return 0;
  }
  return CAFFE_REAL(clock_gettime)(clock, time);
}

int nanosleep(const timespec* time, timespec* left) {
  if (Simulation* const simulation = Simulation::Current()) {
    simulation->Await([] { return false; }, simulation->now() + NanosecondsOf(*time));
    return 0;
  }
  return CAFFE_REAL(nanosleep)(time, left);
}

// --- Sockets.

int socket(int family, int type, int protocol) noexcept {
  Simulation* const simulation = Simulation::Current();
  if (simulation == nullptr) return CAFFE_REAL(socket)(family, type, protocol);
  if (family != AF_INET) return Result(-EAFNOSUPPORT);  // machines have only IPv4
  return simulation->network().Open();
}

int eventfd(unsigned count, int flags) noexcept {
  if (Simulation* const simulation = Simulation::Current()) {
    return simulation->network().OpenEvent();
  }
  return CAFFE_REAL(eventfd)(count, flags);
}

int bind(int descriptor, const sockaddr* address, socklen_t size) noexcept {
  if (SimulatedNetwork* const network = NetworkOf(descriptor)) {
    const auto& own = *reinterpret_cast<const sockaddr_in*>(address);
    return Result(network->Bind(descriptor, ntohs(own.sin_port)));
  }
  return CAFFE_REAL(bind)(descriptor, address, size);
}

int listen(int descriptor, int count) noexcept {
  if (SimulatedNetwork* const network = NetworkOf(descriptor)) return network->Listen(descriptor);
  return CAFFE_REAL(listen)(descriptor, count);
}

int connect(int descriptor, const sockaddr* address, socklen_t size) {
  if (SimulatedNetwork* const network = Entered(descriptor)) {
    const auto& other = *reinterpret_cast<const sockaddr_in*>(address);
    const auto host = static_cast<int>(ntohl(other.sin_addr.s_addr) & 255) - 1;
    return Result(network->Connect(descriptor, host, ntohs(other.sin_port)));
  }
  return CAFFE_REAL(connect)(descriptor, address, size);
}

int accept4(int descriptor, sockaddr* address, socklen_t* size, int flags) {
  if (SimulatedNetwork* const network = Entered(descriptor)) {
    return Result(network->Accept(descriptor));
  }
  return CAFFE_REAL(accept4)(descriptor, address, size, flags);
}

ssize_t send(int descriptor, const void* bytes, size_t count, int flags) {
  if (SimulatedNetwork* const network = Entered(descriptor)) {
    return Result(network->Send(descriptor, static_cast<const char*>(bytes), count));
  }
  return CAFFE_REAL(send)(descriptor, bytes, count, flags);
}

ssize_t recv(int descriptor, void* bytes, size_t count, int flags) {
  if (SimulatedNetwork* const network = Entered(descriptor)) {
    return Result(network->Receive(descriptor, static_cast<char*>(bytes), count));
  }
  return CAFFE_REAL(recv)(descriptor, bytes, count, flags);
}

int shutdown(int descriptor, int how) noexcept {
  if (SimulatedNetwork* const network = NetworkOf(descriptor)) {
    return Result(network->EndSending(descriptor));
  }
  return CAFFE_REAL(shutdown)(descriptor, how);
}

int setsockopt(int descriptor, int level, int option, const void* value, socklen_t size) noexcept {
  SimulatedNetwork* const network = NetworkOf(descriptor);
  if (network == nullptr) return CAFFE_REAL(setsockopt)(descriptor, level, option, value, size);
  const int number = *static_cast<const int*>(value);
  if (level == SOL_SOCKET && option == SO_KEEPALIVE && number != 0) network->KeepAlive(descriptor);
  if (level == IPPROTO_TCP && option == TCP_USER_TIMEOUT) {
    network->SetUserTimeout(descriptor, int64_t{number} * 1'000'000);
  }
  return 0;
}

int getsockopt(int descriptor, int level, int option, void* value, socklen_t* size) noexcept {
  SimulatedNetwork* const network = NetworkOf(descriptor);
  if (network == nullptr) return CAFFE_REAL(getsockopt)(descriptor, level, option, value, size);
  *static_cast<int*>(value) = option == SO_ERROR ? network->TakeError(descriptor) : 0;
  return 0;
}

int getsockname(int descriptor, sockaddr* address, socklen_t* size) noexcept {
  if (SimulatedNetwork* const network = NetworkOf(descriptor)) {
    return Give(AddressOf(network->NameOf(descriptor)), address, size);
  }
  return CAFFE_REAL(getsockname)(descriptor, address, size);
}

int getpeername(int descriptor, sockaddr* address, socklen_t* size) noexcept {
  if (SimulatedNetwork* const network = NetworkOf(descriptor)) {
    return Give(AddressOf(network->PeerOf(descriptor)), address, size);
  }
  return CAFFE_REAL(getpeername)(descriptor, address, size);
}

int poll(pollfd* waiting, nfds_t count, int milliseconds) {
  Simulation* const simulation = Simulation::Current();
  if (simulation == nullptr) return CAFFE_REAL(poll)(waiting, count, milliseconds);
  simulation->Enter();
  const auto look = [=] {
    int ready = 0;
    for (nfds_t i = 0; i < count; ++i) {
      SimulatedNetwork& network = simulation->network();
      int found = 0;
      if ((waiting[i].events & POLLIN) && network.IsReadable(waiting[i].fd)) found |= POLLIN;
      if ((waiting[i].events & POLLOUT) && network.IsWritable(waiting[i].fd)) found |= POLLOUT;
      waiting[i].revents = static_cast<short>(found);
      ready += found != 0;
    }
    return ready;
  };
  const int64_t deadline =
      milliseconds < 0 ? kNever : simulation->now() + int64_t{milliseconds} * 1'000'000;
  simulation->Await([=] { return look() > 0; }, deadline);
  return look();
}

// --- Files.

int open(const char* path, int flags, ...) {
  mode_t mode = 0;
  if (flags & (O_CREAT | O_TMPFILE)) {
    va_list arguments;
    va_start(arguments, flags);
    mode = static_cast<mode_t>(va_arg(arguments, int));
    va_end(arguments);
  }
  if (SimulatedDisk* const disk = DiskOf(path)) return OpenOnDisk(disk, path, flags, mode);
  return CAFFE_REAL(open)(path, flags, mode);
}

ssize_t read(int descriptor, void* bytes, size_t count) {
  if (SimulatedNetwork* const network = NetworkOf(descriptor)) {
    return Result(network->ReadEvent(descriptor, static_cast<uint64_t*>(bytes)));
  }
  return CAFFE_REAL(read)(descriptor, bytes, count);
}

ssize_t write(int descriptor, const void* bytes, size_t count) {
  if (SimulatedNetwork* const network = NetworkOf(descriptor)) {
    return Result(network->WriteEvent(descriptor, *static_cast<const uint64_t*>(bytes)));
  }
  if (SimulatedDisk* const disk = DiskOf(descriptor)) {
    return WriteToDisk(disk, descriptor, static_cast<const char*>(bytes), count);
  }
  return CAFFE_REAL(write)(descriptor, bytes, count);
}

int fsync(int descriptor) {
  SimulatedDisk* const disk = DiskOf(descriptor);
  if (disk == nullptr) return CAFFE_REAL(fsync)(descriptor);
  if (!HasRoom(disk)) return -1;
  disk->Synchronized(descriptor);
  return 0;
}

int rename(const char* from, const char* to) noexcept {
  SimulatedDisk* const disk = DiskOf(std::string(from));
  if (disk == nullptr) return CAFFE_REAL(rename)(from, to);
  if (!HasRoom(disk)) return -1;
  const int result = CAFFE_REAL(rename)(from, to);
  if (result == 0) disk->Renamed(from, to);
  return result;
}

int unlink(const char* path) noexcept {
  SimulatedDisk* const disk = DiskOf(std::string(path));
  if (disk == nullptr) return CAFFE_REAL(unlink)(path);
  Simulation::Current()->Enter();
  const int result = CAFFE_REAL(unlink)(path);
  if (result == 0) disk->Removed(path);
  return result;
}

int close(int descriptor) {
  if (SimulatedNetwork* const network = NetworkOf(descriptor)) {
    return Result(network->Close(descriptor));
  }
  if (SimulatedDisk* const disk = DiskOf(descriptor)) disk->Closed(descriptor);
  return CAFFE_REAL(close)(descriptor);
}

}  // extern "C"
