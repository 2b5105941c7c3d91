#include "tools/caffe/fault_report.hpp"

#include <fcntl.h>
#include <signal.h>
#include <ucontext.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <initializer_list>

// Everything here runs in a signal handler: it must not allocate memory or take locks.

namespace caffe::tools {
namespace {

void Say(const char* text, size_t size) {
  while (size > 0) {
    const ssize_t written = ::write(STDERR_FILENO, text, size);
    if (written <= 0) return;
    text += written;
    size -= static_cast<size_t>(written);
  }
}

void Say(const char* text) {
  Say(text, std::strlen(text));
}

void SayHexadecimal(uintptr_t number) {
  char text[2 * sizeof(number) + 2];
  char* begin = text + sizeof(text);
  do {
    *--begin = "0123456789abcdef"[number % 16];
    number /= 16;
  } while (number > 0);
  *--begin = 'x';
  *--begin = '0';
  Say(begin, static_cast<size_t>(text + sizeof(text) - begin));
}

// Iterates over the memory mappings of this process. Each is a line of /proc/self/maps, such as
// "7f12a000-7f13a000 r--s 00000000 fe:00 1234   /data/train/data.mdb".
class Mappings {
 public:
  Mappings() : descriptor_(::open("/proc/self/maps", O_RDONLY | O_CLOEXEC)) {}
  ~Mappings() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }
  Mappings(const Mappings&) = delete;
  Mappings& operator=(const Mappings&) = delete;

  // Returns false after the last line.
  bool Next() {
    size_ = 0;
    char one;
    while (ReadByte(&one) && one != '\n') {
      if (size_ + 1 < sizeof(line_)) line_[size_++] = one;
    }
    line_[size_] = '\0';
    return size_ > 0;
  }

  bool Holds(uintptr_t address) const {
    const char* next = line_;
    const uintptr_t begin = Hexadecimal(&next);
    return *next++ == '-' && begin <= address && address < Hexadecimal(&next);
  }

  // Null if no file is mapped.
  const char* file() const { return std::strchr(line_, '/'); }

  bool IsDatabase() const {
    static constexpr char kName[] = "/data.mdb";
    static constexpr size_t kLength = sizeof(kName) - 1;
    return size_ > kLength && std::strcmp(line_ + size_ - kLength, kName) == 0;
  }

 private:
  bool ReadByte(char* one) {
    if (next_ == filled_) {
      const ssize_t count = ::read(descriptor_, block_, sizeof(block_));
      if (count <= 0) return false;
      filled_ = static_cast<size_t>(count);
      next_ = 0;
    }
    *one = block_[next_++];
    return true;
  }

  static uintptr_t Hexadecimal(const char** text) {
    uintptr_t value = 0;
    for (;; ++*text) {
      const char digit = **text;
      if ('0' <= digit && digit <= '9') {
        value = value * 16 + static_cast<uintptr_t>(digit - '0');
      } else if ('a' <= digit && digit <= 'f') {
        value = value * 16 + static_cast<uintptr_t>(digit - 'a' + 10);
      } else {
        return value;
      }
    }
  }

  int descriptor_;
  char block_[4096];
  size_t next_ = 0, filled_ = 0;
  char line_[4352];
  size_t size_ = 0;
};

const char* NameOf(int signal) {
  switch (signal) {
    case SIGBUS:
      return "SIGBUS";
    case SIGSEGV:
      return "SIGSEGV";
    case SIGFPE:
      return "SIGFPE";
    default:
      return "SIGABRT";
  }
}

// If the address lies in a mapped file, prints the report and returns true.
bool SayWhichFileEnded(uintptr_t address) {
  Mappings mappings;
  while (mappings.Next()) {
    if (!mappings.Holds(address) || !mappings.file()) continue;
    Say("caffe: ");
    Say(mappings.file());
    Say(": cannot be read any more (SIGBUS): the file became shorter, or its disk failed, while it "
        "was in use; put the whole file back and go on from the last snapshot\n");
    return true;
  }
  return false;
}

// The program counter at the fault; 0 if unknown.
uintptr_t InstructionOf(const void* context) {
#if defined(__x86_64__)
  return static_cast<uintptr_t>(
      static_cast<const ucontext_t*>(context)->uc_mcontext.gregs[REG_RIP]);
#elif defined(__aarch64__)
  return static_cast<const ucontext_t*>(context)->uc_mcontext.pc;
#else
  static_cast<void>(context);
  return 0;
#endif
}

// Calls fn() with the mapping that holds the address; returns false if there is none.
template <typename Fn>
bool With(uintptr_t address, const Fn& fn) {
  Mappings mappings;
  while (mappings.Next()) {
    if (!mappings.Holds(address)) continue;
    fn(mappings);
    return true;
  }
  return false;
}

// Prints the library or program of the fault, and the memory address accessed.
void SayWhere(const siginfo_t& what, uintptr_t instruction) {
  const bool is_known = With(instruction, [](const Mappings& mapping) {
    Say(mapping.file() ? " in " : " in code that was made at run time");
    if (mapping.file()) Say(mapping.file());
  });
  if (!is_known) Say(" in a call of no function");
  Say(", at address ");
  SayHexadecimal(reinterpret_cast<uintptr_t>(what.si_addr));
}

// A damaged page can send LMDB to an invalid address, so this names the open databases.
void SayWhichDatabaseIsDamaged(uintptr_t instruction) {
  bool was_reading = false;
  With(instruction, [&](const Mappings& mapping) {
    was_reading = mapping.file() && std::strstr(mapping.file(), "/liblmdb.") != nullptr;
  });
  Mappings mappings;
  static char said[4352];  // the last file; both LMDB and we map it, so it is listed twice
  while (was_reading && mappings.Next()) {
    if (!mappings.IsDatabase() || std::strcmp(mappings.file(), said) == 0) continue;
    std::strncpy(said, mappings.file(), sizeof(said) - 1);
    Say("caffe: LMDB was reading, and database ");
    Say(mappings.file());
    Say(" is open: see whether it is damaged by caffe data verify\n");
  }
}

std::atomic_flag is_reported = ATOMIC_FLAG_INIT;

// Several threads that read one file fault at once: the first one reports and ends the process.
void OnFault(int signal, siginfo_t* what, void* context) {
  while (is_reported.test_and_set()) ::pause();
  if (signal == SIGBUS && SayWhichFileEnded(reinterpret_cast<uintptr_t>(what->si_addr))) {
    ::_exit(1);
  }
  Say("caffe: ended by ");
  Say(NameOf(signal));
  if (what->si_code <= 0) {  // sent by kill() or abort()
    Say(what->si_pid == ::getpid() ? ", which it sent itself" : ", which another process sent");
  } else {
    SayWhere(*what, InstructionOf(context));
  }
  Say("; snapshots that are written are whole\n");
  if (what->si_code > 0) SayWhichDatabaseIsDamaged(InstructionOf(context));
  ::signal(signal, SIG_DFL);
  ::raise(signal);  // now with the default action
}

// After a stack overflow the handler needs a stack of its own.
void GiveReportsTheirOwnStack() {
  static std::array<char, size_t{64} << 10> memory;
  stack_t stack{};
  stack.ss_sp = memory.data();
  stack.ss_size = memory.size();
  ::sigaltstack(&stack, nullptr);
}

}  // namespace

void ReportFaults() {
  ::signal(SIGXFSZ, SIG_IGN);
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  return;  // the sanitizer reports
#endif
  GiveReportsTheirOwnStack();
  struct sigaction action {};
  action.sa_sigaction = OnFault;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  for (const int signal : {SIGBUS, SIGSEGV, SIGFPE, SIGABRT}) sigaction(signal, &action, nullptr);
}

}  // namespace caffe::tools
