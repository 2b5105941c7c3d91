// SimulatedDisk: one folder that keeps only synchronized data when the power is cut.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace caffe::fuzz {

class Simulation;

// Files are stored in a real folder; this class tracks the operations on them. Synchronizing a file
// makes its bytes durable, synchronizing the folder its names. Files are written at their end and
// renamed within the folder.
class SimulatedDisk {
 public:
  struct Options {
    // The disk is full from this operation on, for this many operations.
    int64_t full_from = -1, full_for = 0;
    // Planted errors: synchronizing does nothing; files get their names before their bytes.
    bool ignores_synchronization = false, names_files_at_once = false;
  };

  SimulatedDisk(Simulation* simulation, std::string folder, const Options& options);

  // The folder gets the contents of a disk whose power is cut now, chosen by the seed. Nobody
  // writes to it any more.
  void CutPower();

  // --- For the calls of simulated threads. Names are paths; other folders are not on this disk.

  bool Has(const std::string& path) const;
  bool Has(int descriptor) const { return opened_.count(descriptor) > 0; }
  // Counts an operation. Returns whether there is room for it.
  bool HasRoom();
  void Opened(int descriptor, const std::string& path, bool is_new, int process);
  void Wrote(int descriptor, const char* bytes, size_t count);
  void Synchronized(int descriptor);
  void Renamed(const std::string& from, const std::string& to);
  void Removed(const std::string& path);
  void Closed(int descriptor);
  // Closes, like the system, everything that an ended process had opened.
  void Exit(int process);

 private:
  struct File {
    int number = 0;  // names of temporary files are random, so they must not decide an order
    std::string durable, pending;
  };
  struct Change {  // to the folder; atomic
    std::string from, to;
    std::shared_ptr<File> file;
  };
  struct Opening {
    std::shared_ptr<File> file;  // null for the folder
    int process;
  };
  using Names = std::map<std::string, std::shared_ptr<File>>;

  void Record(const Change& change);
  static void Apply(const Change& change, Names* names);
  std::string Reached(const File& file);

  Simulation& simulation_;
  const std::string folder_;
  const Options options_;
  int64_t operations_ = 0;
  int files_ = 0;
  std::map<int, Opening> opened_;
  Names durable_, names_;
  std::vector<Change> pending_;
};

}  // namespace caffe::fuzz
