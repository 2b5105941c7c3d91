// Runs a fuzz target over files and the files of folders, for builds without libFuzzer.
//
//   fuzz_replay TARGET [--mutations N | --seconds N] [--seed N] [--dictionary FILE] [--found DIR]
//   PATH...
//
//   --mutations N      then N inputs made from those by random changes, the same for the same seed
//   --seconds N        then as many as possible in that time, or until SIGTERM
//   --dictionary FILE  words to insert, one quoted string per line, as in libFuzzer
//   --found DIR        the current input is stored as DIR/input; it remains after a crash
#include <glog/logging.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "tests/fuzz/dag/random_numbers.hpp"
#include "tests/fuzz/fuzz_input.hpp"

namespace {

constexpr unsigned kSecondsPerInput = 60;

volatile std::sig_atomic_t is_stopped = 0;

struct Arguments {
  caffe::fuzz::Target target = nullptr;
  std::vector<std::filesystem::path> paths;
  uint64_t mutations = 0, seconds = 0, seed = 1;
  std::string dictionary, found;
};

std::string ReadFile(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// Returns the word of a line NAME="WORD" or "WORD", for example of "a\x41\""; empty if there is
// none.
std::string WordOf(const std::string& line) {
  std::string word;
  const size_t begin = line.find('"');
  if (line.starts_with('#') || begin == std::string::npos) return word;
  for (size_t i = begin + 1; i < line.size() && line[i] != '"'; ++i) {
    if (line[i] != '\\') {
      word += line[i];
    } else if (line.compare(i, 2, "\\x") == 0 && i + 3 < line.size()) {
      word += static_cast<char>(std::stoi(line.substr(i + 2, 2), nullptr, 16));
      i += 3;
    } else if (++i < line.size()) {
      word += line[i];
    }
  }
  return word;
}

std::vector<std::string> ReadDictionary(const std::string& path) {
  std::vector<std::string> words;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (std::string word = WordOf(line); !word.empty()) words.push_back(std::move(word));
  }
  return words;
}

// Changes inputs at random. It gets no coverage feedback, so it is not a substitute for libFuzzer.
class Mutator {
 public:
  Mutator(const Arguments& arguments, std::vector<std::string> inputs)
      : random_(arguments.seed),
        inputs_(std::move(inputs)),
        words_(ReadDictionary(arguments.dictionary)) {}

  std::string Next() {
    std::string input = random_.Pick(inputs_);
    for (int left = random_.Pick({1, 1, 2, 3, 5, 8}); left > 0; --left) Change(&input);
    return input;
  }

 private:
  size_t PlaceIn(const std::string& text) {
    return static_cast<size_t>(random_.Below(static_cast<int64_t>(text.size()) + 1));
  }
  // The length of a short part, or of one of any length.
  size_t LengthIn(const std::string& text, size_t from) {
    const auto left = static_cast<int64_t>(text.size() - from);
    return static_cast<size_t>(
        random_.Below((random_.Chance(0.8) ? std::min<int64_t>(left, 16) : left) + 1));
  }

  void Change(std::string* input) {
    const size_t at = PlaceIn(*input);
    switch (random_.Below(8)) {
      case 0:
        if (at < input->size())
          (*input)[at] = static_cast<char>((*input)[at] ^ 1 << random_.Below(8));
        break;
      case 1:
        if (at < input->size()) (*input)[at] = static_cast<char>(random_.Below(256));
        break;
      case 2:
        input->erase(at, LengthIn(*input, at));
        break;
      case 3:
        input->insert(at, input->substr(at, LengthIn(*input, at)));
        break;
      case 4: {
        const std::string& other = random_.Pick(inputs_);
        const size_t from = PlaceIn(other);
        input->insert(at, other.substr(from, LengthIn(other, from)));
        break;
      }
      case 5:
        ReplaceNumber(input, at);
        break;
      case 6:
        SetInteger(input, at);
        break;
      default:
        if (!words_.empty()) input->insert(at, random_.Pick(words_));
    }
  }

  // Replaces the next decimal number in a text.
  void ReplaceNumber(std::string* input, size_t at) {
    const size_t begin = input->find_first_of("0123456789", at);
    if (begin == std::string::npos) return;
    const size_t end = input->find_first_not_of("0123456789.", begin);
    static const std::vector<std::string> numbers = {
        "0",          "1",          "2",          "3",          "7",   "-1",  "255",  "65536",
        "2147483647", "2147483648", "4294967295", "1000000007", "0.5", "nan", "-inf", "1e39"};
    input->replace(begin, end == std::string::npos ? end : end - begin, random_.Pick(numbers));
  }

  // Replaces four bytes of a binary file.
  void SetInteger(std::string* input, size_t at) {
    if (at + 4 > input->size()) return;
    const auto value = static_cast<uint32_t>(
        random_.Pick<int64_t>({0, 1, -1, 0x7fffffff, 0x80000000, 0x10000, 0xff, 0x01000000}));
    std::memcpy(&(*input)[at], &value, 4);
  }

  caffe::fuzz::RandomNumbers random_;
  const std::vector<std::string> inputs_, words_;
};

void Run(const Arguments& arguments, const std::string& input) {
  alarm(kSecondsPerInput);
  arguments.target(reinterpret_cast<const uint8_t*>(input.data()), input.size());
}

std::vector<std::string> Replay(const Arguments& arguments) {
  std::vector<std::filesystem::path> files;
  for (const auto& path : arguments.paths) {
    if (!std::filesystem::is_directory(path)) {
      files.push_back(path);
    } else {
      for (const auto& entry : std::filesystem::directory_iterator(path)) files.push_back(entry);
    }
  }
  std::ranges::sort(files);  // so that the mutated inputs depend only on the seed
  std::vector<std::string> inputs;
  for (const auto& file : files) {
    std::printf("%s\n", file.c_str());
    std::fflush(stdout);
    inputs.push_back(ReadFile(file));
    Run(arguments, inputs.back());
  }
  std::printf("%zu inputs\n", inputs.size());
  return inputs;
}

void RunMutations(const Arguments& arguments, const std::vector<std::string>& inputs) {
  using Clock = std::chrono::steady_clock;
  const auto end = Clock::now() + std::chrono::seconds(arguments.seconds);
  Mutator mutator(arguments, inputs);
  uint64_t count = 0;
  while (is_stopped == 0 && (count < arguments.mutations || Clock::now() < end)) {
    const std::string input = mutator.Next();
    if (!arguments.found.empty()) {
      std::filesystem::create_directories(arguments.found);
      std::ofstream(std::filesystem::path(arguments.found) / "input", std::ios::binary) << input;
    }
    Run(arguments, input);
    ++count;
  }
  if (!arguments.found.empty()) {
    std::filesystem::remove(std::filesystem::path(arguments.found) / "input");
  }
  if (count > 0) std::printf("%llu mutations\n", static_cast<unsigned long long>(count));
}

caffe::fuzz::Target FindTarget(const std::string& name) {
  const auto& targets = caffe::fuzz::Targets();
  const auto found = targets.find(name);
  if (found != targets.end()) return found->second;
  std::fprintf(stderr, "no fuzz target '%s'; there are:", name.c_str());
  for (const auto& [known, target] : targets) std::fprintf(stderr, " %s", known.c_str());
  std::fprintf(stderr, "\n");
  std::exit(2);
}

Arguments Parse(int argc, char** argv) {
  Arguments arguments;
  arguments.target = FindTarget(argc > 1 ? argv[1] : "");
  for (int i = 2; i < argc; ++i) {
    const std::string flag = argv[i];
    if (!flag.starts_with("--")) {
      arguments.paths.emplace_back(flag);
      continue;
    }
    const char* const value = i + 1 < argc ? argv[++i] : "";
    if (flag == "--mutations") {
      arguments.mutations = std::strtoull(value, nullptr, 10);
    } else if (flag == "--seconds") {
      arguments.seconds = std::strtoull(value, nullptr, 10);
    } else if (flag == "--seed") {
      arguments.seed = std::strtoull(value, nullptr, 10);
    } else if (flag == "--dictionary") {
      arguments.dictionary = value;
    } else if (flag == "--found") {
      arguments.found = value;
    } else {
      std::fprintf(stderr, "unknown flag '%s'; see the beginning of replay_main.cpp\n", argv[i]);
      std::exit(2);
    }
  }
  return arguments;
}

}  // namespace

int main(int argc, char** argv) {
  google::InitGoogleLogging(argv[0]);
  FLAGS_minloglevel = google::GLOG_FATAL;
  const Arguments arguments = Parse(argc, argv);
  const std::vector<std::string> inputs = Replay(arguments);
  if (inputs.empty()) return 1;
  std::signal(SIGTERM, [](int) { is_stopped = 1; });
  RunMutations(arguments, inputs);
  return 0;
}
