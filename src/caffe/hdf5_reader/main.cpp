// The program caffe_hdf5_reader, installed in the folder of libcaffe: reads one HDF5 file for a
// process whose Hdf5Reader starts it, and answers its questions over the socket that is its
// standard input.
//
//   caffe_hdf5_reader FILE MAX_DECODED_MB
//
// The HDF5 library crashes on some damaged files and loops forever on others. Here this ends only
// the reader of one file. It exits when the other end of the socket is closed.
#include <sys/resource.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <new>
#include <optional>

#include "caffe/decode_limit.hpp"
#include "caffe/error.hpp"
#include "caffe/hdf5_reader/hdf5_contents.hpp"
#include "caffe/io/hdf5_messages.hpp"

namespace {

using caffe::Hdf5Answer;
using caffe::Hdf5Contents;
using caffe::Hdf5Question;

constexpr int kSocket = STDIN_FILENO;
// CPU time limit for one question: a fixed part for traversing tables, and a rate for values, of
// which even compressed ones are read ten times as fast.
constexpr uint64_t kSeconds = 5;
constexpr uint64_t kBytesPerSecond = uint64_t{8} << 20;
// Memory that is not counted: the library's tables and buffers.
constexpr uint64_t kOtherBytes = uint64_t{256} << 20;

// Ends this process by SIGPROF unless it is called again within that time.
void LimitSeconds(uint64_t seconds) {
  const itimerval limit{.it_interval = {},
                        .it_value = {.tv_sec = static_cast<time_t>(seconds), .tv_usec = 0}};
  setitimer(ITIMER_PROF, &limit, nullptr);
}

void Answer(Hdf5Answer kind, std::span<const std::byte> body = {}) {
  // Exits without running destructors, because the library may be in any state.
  if (!caffe::SendMessage(kSocket, static_cast<uint8_t>(kind), body)) _exit(0);
}

template <typename T>
void AnswerPart(std::span<const T> values) {
  Answer(Hdf5Answer::kPart, std::as_bytes(values));
}

void AnswerText(const std::string& text) {
  AnswerPart(std::span<const char>(text));
}

void AnswerBool(bool value) {
  const uint8_t number = value;
  AnswerPart(std::span(&number, 1));
}

template <typename T>
void AnswerValues(Hdf5Contents* contents, const std::string& name) {
  const auto start = [](uint64_t count) {
    const uint64_t bytes = count * sizeof(T);
    LimitSeconds(kSeconds + bytes / kBytesPerSecond);
    Answer(Hdf5Answer::kBytes, std::as_bytes(std::span(&bytes, 1)));
  };
  contents->Read<T>(name, start, AnswerPart<T>);
}

void AnswerQuestion(Hdf5Question question, const std::string& name, Hdf5Contents* contents) {
  switch (question) {
    case Hdf5Question::kContains:
      return AnswerBool(contents->Contains(name));
    case Hdf5Question::kIsGroup:
      return AnswerBool(contents->IsGroup(name));
    case Hdf5Question::kLinksOf:
      for (const std::string& link : contents->LinksOf(name)) AnswerText(link);
      return;
    case Hdf5Question::kShapeOf:
      return AnswerPart(std::span(contents->ShapeOf(name).dims()));
    case Hdf5Question::kReadFloats:
      return AnswerValues<float>(contents, name);
    case Hdf5Question::kReadDoubles:
      return AnswerValues<double>(contents, name);
    case Hdf5Question::kReadIntegers:
      return AnswerValues<int64_t>(contents, name);
    case Hdf5Question::kReadString:
      return AnswerText(contents->ReadString(name));
  }
}

// Runs `answer` and reports its end or error. Returns true if there was no error.
template <typename Fn>
bool Finish(const std::string& path, const Fn& answer) {
  const auto fail = [](Hdf5Answer kind, const std::string& text) {
    Answer(kind, std::as_bytes(std::span(text)));
    return false;
  };
  LimitSeconds(kSeconds);
  try {
    answer();
    Answer(Hdf5Answer::kEnd);
    return true;
  } catch (const caffe::InvalidArgument& error) {
    return fail(Hdf5Answer::kInvalidArgument, error.what());
  } catch (const caffe::Error& error) {
    return fail(Hdf5Answer::kIoError, error.what());
  } catch (const std::bad_alloc&) {
    return fail(Hdf5Answer::kIoError, path + ": too little memory to read it");
  }
}

// The limit is added to this process's present size, which is terabytes in builds with a sanitizer.
void LimitMemory(const std::string& path) {
  std::error_code error;
  const uint64_t file_bytes = std::filesystem::file_size(path, error);
  uint64_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  if (error || pages == 0) return;
  // Three copies: values, their form in the file, and a buffer for decompression.
  const rlim_t bytes = pages * static_cast<uint64_t>(sysconf(_SC_PAGESIZE)) +
                       3 * caffe::MostDecodedBytes(file_bytes) + kOtherBytes;
  rlimit limit;
  getrlimit(RLIMIT_AS, &limit);
  limit.rlim_cur = std::min(limit.rlim_cur, bytes);
  setrlimit(RLIMIT_AS, &limit);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fputs("caffe_hdf5_reader is started by Cortado's library, and by nobody else\n", stderr);
    return 2;
  }
  const std::string path = argv[1];
  caffe::SetMaxDecodedMb(std::atoll(argv[2]));
  LimitMemory(path);
  const rlimit no_dump{};
  setrlimit(RLIMIT_CORE, &no_dump);
  H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);  // our errors contain the reasons

  std::optional<Hdf5Contents> contents;
  if (!Finish(path, [&] { contents.emplace(path); })) _exit(0);
  for (caffe::Hdf5Message message; caffe::ReceiveMessage(kSocket, &message);) {
    const auto question = static_cast<Hdf5Question>(message.kind);
    Finish(path, [&] { AnswerQuestion(question, message.body, &*contents); });
  }
  _exit(0);
}
