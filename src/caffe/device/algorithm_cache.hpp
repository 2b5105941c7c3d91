// Caches the fastest algorithm for an op and its shapes, measured once per machine.
#pragma once

#include <ctime>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>

#include "caffe/export.hpp"

namespace caffe {

// A text file with a line "key<tab>algorithm" per measurement, a line
// "key<tab>?algorithm<tab>host<tab>process<tab>start<tab>time<tab>lost" per attempt (with an empty
// algorithm for an attempt that was given up), and a line "key<tab>!algorithm" for an algorithm
// that lost the device. Any number of processes may share the file: each appends whole lines, and
// the last measurement of a key counts. A file with many superseded lines is compacted when it is
// opened. A file that cannot be read or written only costs measurements. Thread-safe.
class CAFFE_EXPORT AlgorithmCache {
 public:
  // Without a file (""), results last as long as the object.
  explicit AlgorithmCache(std::string file) : file_(std::move(file)) {}

  // CAFFE_ALGORITHM_CACHE, else cortado/algorithms.tsv in XDG_CACHE_HOME or ~/.cache, plus the
  // suffix; "" if CAFFE_ALGORITHM_CACHE is /dev/null or there is no such folder.
  static std::string FileOfUser(const std::string& suffix = "");
  static AlgorithmCache& OfUser();

  // For messages: the file, or "this process" if there is none.
  std::string keeper() const { return file_.empty() ? "this process" : file_; }

  // A key begins with the chip, then '|'.
  std::optional<std::string> Find(const std::string& key);
  void Store(const std::string& key, const std::string& algorithm);

  // Notes in the file that this process tries the algorithm until it tries another one for the key
  // or stores the fastest. Returns false, without a note, if the algorithm is excluded or three
  // starts in a row ended in it: it crashes or hangs. Processes that try it at the same time are
  // one start, so that a killed job counts once, whatever its number of ranks.
  bool Try(const std::string& key, const std::string& algorithm);
  bool HasCrashed(const std::string& key, const std::string& algorithm);
  // Notes that the algorithm made this process lose the device, and excludes it.
  void LeaveOut(const std::string& key, const std::string& algorithm);
  // Notes that the last attempt of this process for the key ended without a result.
  void GiveUp(const std::string& key);

 private:
  // The last attempt of one process at a key.
  struct Attempt {
    std::string algorithm, host;
    int process = 0;
    std::time_t time = 0;
    int lost = 0;  // consecutive earlier starts that ended in the algorithm
    // True if the process has ended or the attempt is too old to be running.
    bool IsOver() const;
    std::string Text(const std::string& start) const;
  };

  void Load();
  bool Read(const std::string& line);
  std::string Text() const;
  void Replace(const std::string& text);
  void TellOfOtherChips(const std::string& key);
  int LostStarts(const std::string& key, const std::string& algorithm) const;
  bool IsLeftOut(const std::string& key, const std::string& algorithm) const;
  void AppendAttempt(const std::string& key, const std::string& algorithm);
  void Append(std::string line);

  const std::string file_;
  std::mutex mutex_;
  bool is_loaded_ = false;
  bool ends_in_a_line_ = false;  // the file's last line lacks its newline
  bool has_told_of_chips_ = false;
  std::map<std::string, std::string> algorithms_;
  std::map<std::string, std::map<std::string, Attempt>> attempts_;  // by key and process
  std::map<std::string, std::set<std::string>> left_out_;           // by key
};

}  // namespace caffe
