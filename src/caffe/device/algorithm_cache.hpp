// Which algorithm was the fastest for an op and its shapes: measured once per machine.
#pragma once

#include <ctime>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>

#include "caffe/export.hpp"

namespace caffe {

// A text file with a line "key<tab>algorithm" per measurement and a line
// "key<tab>?algorithm<tab>host<tab>process<tab>start<tab>time<tab>lost" per attempt, without an
// algorithm for one that was given up, and a line "key<tab>!algorithm" for one that cost a device.
// Any number of processes may share it: each appends whole lines, and the last measurement of a key
// counts. A file with many superseded lines is replaced by a short one when it is opened. A file
// that cannot be read or written costs measurements, no more. Calls from several threads are in
// order.
class CAFFE_EXPORT AlgorithmCache {
 public:
  // Without a file ("") findings last as long as the object.
  explicit AlgorithmCache(std::string file) : file_(std::move(file)) {}

  // CAFFE_ALGORITHM_CACHE, else cortado/algorithms.tsv in XDG_CACHE_HOME or ~/.cache, and the
  // suffix; "" where CAFFE_ALGORITHM_CACHE is /dev/null.
  static std::string FileOfUser(const std::string& suffix = "");
  static AlgorithmCache& OfUser();

  // For messages: the file, or "this process" without one.
  std::string keeper() const { return file_.empty() ? "this process" : file_; }

  // A key begins with the chip, then '|'.
  std::optional<std::string> Find(const std::string& key);
  void Store(const std::string& key, const std::string& algorithm);

  // Notes in the file that this process tries the algorithm from now on, until it tries another one
  // for the key or stores the fastest. False, and no note, for one that is left out, or in which
  // three starts in a row ended: it crashes or hangs. Processes that try it at the same time are
  // one start, so that a job that is killed counts once, whatever its number of ranks.
  bool Try(const std::string& key, const std::string& algorithm);
  bool HasCrashed(const std::string& key, const std::string& algorithm);
  // Notes that the algorithm has cost this process the device.
  void LeaveOut(const std::string& key, const std::string& algorithm);
  // Notes that this process came back from what it tried last for the key, and learnt nothing.
  void GiveUp(const std::string& key);

 private:
  // The last attempt of one process at a key.
  struct Attempt {
    std::string algorithm, host;
    int process = 0;
    std::time_t time = 0;
    int lost = 0;  // starts in a row that had ended in the algorithm before
    // Whether its process cannot come back any more.
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
  bool ends_in_a_line_ = false;  // that was not finished
  bool has_told_of_chips_ = false;
  std::map<std::string, std::string> algorithms_;
  std::map<std::string, std::map<std::string, Attempt>> attempts_;  // by key and process
  std::map<std::string, std::set<std::string>> left_out_;           // by key
};

}  // namespace caffe
