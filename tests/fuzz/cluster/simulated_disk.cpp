#include "tests/fuzz/cluster/simulated_disk.hpp"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "tests/fuzz/cluster/real_calls.hpp"
#include "tests/fuzz/cluster/simulation.hpp"

namespace caffe::fuzz {
namespace {

namespace fs = std::filesystem;

std::string BytesOf(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace

SimulatedDisk::SimulatedDisk(Simulation* simulation, std::string folder, const Options& options)
    : simulation_(*simulation), folder_(std::move(folder)), options_(options) {
  if (folder_.empty()) return;
  for (const auto& entry : fs::directory_iterator(folder_)) {
    durable_[entry.path().filename().string()] =
        std::make_shared<File>(File{.durable = BytesOf(entry.path())});
  }
  for (const auto& [name, file] : durable_) file->number = ++files_;
  names_ = durable_;
}

bool SimulatedDisk::Has(const std::string& path) const {
  return !folder_.empty() && (path == folder_ || fs::path(path).parent_path().string() == folder_);
}

bool SimulatedDisk::HasRoom() {
  const int64_t number = operations_++;
  return options_.full_from < 0 || number < options_.full_from ||
         number >= options_.full_from + options_.full_for;
}

void SimulatedDisk::Opened(int descriptor, const std::string& path, bool is_new, int process) {
  if (path == folder_) {
    opened_[descriptor] = {nullptr, process};
    return;
  }
  const std::string name = fs::path(path).filename().string();
  if (is_new || names_.count(name) == 0) {
    Record({"", name, std::make_shared<File>(File{.number = ++files_})});
    const size_t mark = name.find(".tmp.");
    if (options_.names_files_at_once && mark != std::string::npos) {
      Record({"", name.substr(0, mark), names_.at(name)});
      [[maybe_unused]] const int result =
          ::link(path.c_str(), path.substr(0, path.find(".tmp.")).c_str());
    }
  }
  opened_[descriptor] = {names_.at(name), process};
}

void SimulatedDisk::Wrote(int descriptor, const char* bytes, size_t count) {
  opened_.at(descriptor).file->pending.append(bytes, count);
}

void SimulatedDisk::Synchronized(int descriptor) {
  if (options_.ignores_synchronization) return;
  const Opening& opening = opened_.at(descriptor);
  if (opening.file != nullptr) {
    opening.file->durable += std::exchange(opening.file->pending, "");
    return;
  }
  durable_ = names_;
  pending_.clear();
}

void SimulatedDisk::Record(const Change& change) {
  pending_.push_back(change);
  Apply(change, &names_);
}

void SimulatedDisk::Apply(const Change& change, Names* names) {
  if (!change.from.empty()) names->erase(change.from);
  if (!change.to.empty()) (*names)[change.to] = change.file;
}

void SimulatedDisk::Renamed(const std::string& from, const std::string& to) {
  const std::string old_name = fs::path(from).filename().string();
  if (names_.count(old_name) == 0) return;
  Record({old_name, fs::path(to).filename().string(), names_.at(old_name)});
  if (options_.names_files_at_once)
    ::unlink(from.c_str());  // renaming one link keeps the others
}

void SimulatedDisk::Removed(const std::string& path) {
  Record({fs::path(path).filename().string(), "", nullptr});
}

void SimulatedDisk::Closed(int descriptor) {
  opened_.erase(descriptor);
}

void SimulatedDisk::Exit(int process) {
  for (auto one = opened_.begin(); one != opened_.end();) {
    if (one->second.process == process) {
      CAFFE_REAL(close)(one->first);  // this also releases its lock
      one = opened_.erase(one);
    } else {
      ++one;
    }
  }
}

// Data that is not synchronized may have reached the disk completely, partly, or not at all.
std::string SimulatedDisk::Reached(const File& file) {
  RandomNumbers& random = simulation_.random();
  const size_t size = file.pending.size();
  const size_t reached = random.Pick({size_t{0}, size, random.Next() % (size + 1)});
  std::string bytes = file.durable + file.pending.substr(0, reached);
  // The length may have been written without the bytes.
  if (random.Chance(0.3)) bytes.resize(file.durable.size() + size);
  return bytes;
}

void SimulatedDisk::CutPower() {
  Names names = durable_;
  for (const Change& change : pending_) {
    if (simulation_.random().Chance(0.5)) Apply(change, &names);
  }
  for (const auto& entry : fs::directory_iterator(folder_)) fs::remove(entry.path());
  std::map<int, std::string> contents;  // by the file's number
  for (const auto& [name, file] : names) contents[file->number];
  for (auto& [number, bytes] : contents) {
    const auto file = std::ranges::find_if(
        names, [number = number](const auto& one) { return one.second->number == number; });
    bytes = Reached(*file->second);
  }
  for (const auto& [name, file] : names) {
    std::ofstream(fs::path(folder_) / name, std::ios::binary) << contents.at(file->number);
  }
}

}  // namespace caffe::fuzz
