// caffe data stat: prints statistics of a database.
#include <algorithm>
#include <filesystem>
#include <iostream>
#include <map>

#include "caffe/core/counted.hpp"
#include "caffe/error.hpp"
#include "caffe/io/json.hpp"
#include "tools/caffe/command.hpp"
#include "tools/caffe/options.hpp"
#include "tools/caffe/progress.hpp"
#include "tools/caffe/stored_record.hpp"

namespace caffe::tools {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMostLabels = 20;  // listed in the text output; JSON lists all
constexpr size_t kBarLength = 40;

struct Scanned {
  StoredRecord record;
  std::string error;
};

Scanned Look(const data::Record& record) {
  try {
    return {ReadStoredRecord(record.value, /*decode=*/false), ""};
  } catch (const std::exception& error) {
    return {{.bytes = record.value.size()}, error.what()};
  }
}

struct Statistics {
  uint64_t records = 0, broken = 0, boxes = 0;
  uint64_t bytes = 0, smallest = UINT64_MAX, largest = 0;  // record sizes
  std::map<std::string, uint64_t> shapes, encodings;
  std::map<int, uint64_t> labels;

  void Add(const Scanned& scanned) {
    const StoredRecord& record = scanned.record;
    ++records;
    bytes += record.bytes;
    smallest = std::min<uint64_t>(smallest, record.bytes);
    largest = std::max<uint64_t>(largest, record.bytes);
    if (!scanned.error.empty()) {
      ++broken;
      return;
    }
    ++shapes[StrCat(record.extents)];
    ++encodings[record.encoding];
    for (const int label : record.labels) ++labels[label];
    if (record.has_boxes) boxes += record.labels.size();
  }
};

uint64_t BytesOnDisk(const std::string& folder) {
  uint64_t bytes = 0;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    if (entry.is_regular_file()) bytes += entry.file_size();
  }
  return bytes;
}

// Lists the most frequent shapes.
std::string Shapes(const std::map<std::string, uint64_t>& shapes) {
  constexpr size_t kMost = 5;
  std::vector<std::pair<std::string, uint64_t>> sorted(shapes.begin(), shapes.end());
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  std::string text;
  for (size_t i = 0; i < std::min(sorted.size(), kMost); ++i) {
    text += StrCat(i > 0 ? ", " : "", sorted[i].first, " (", sorted[i].second, ")");
  }
  return sorted.size() > kMost ? text + StrCat(" and ", sorted.size() - kMost, " more") : text;
}

void PrintLabels(const std::map<int, uint64_t>& labels) {
  uint64_t most = 0;
  for (const auto& [label, count] : labels) most = std::max(most, count);
  std::cout << "  labels     " << labels.size() << " different\n";
  size_t lines = 0;
  for (const auto& [label, count] : labels) {
    if (++lines > kMostLabels) {
      std::cout << "    and " << labels.size() - kMostLabels << " more; --json lists all\n";
      return;
    }
    std::cout << "    " << label << ": " << count << " "
              << std::string(std::max<uint64_t>(1, kBarLength * count / most), '*') << "\n";
  }
}

class DataStat : public Command {
 public:
  explicit DataStat(CLI::App& app) {
    app.add_option("DB", database_, "The LMDB or LevelDB")->type_name("FOLDER");
    AddJsonFlag(app, &json_);
  }

  void Run() override {
    RunInterruptible([&] { Report(); });
  }

 private:
  void Report() const {
    const auto reader = OpenDatabase(database_);
    Statistics statistics;
    {
      Progress progress("records", reader->count());
      ScanRecords(*reader, Look, [&](const data::Record&, const Scanned& scanned) {
        statistics.Add(scanned);
        progress.Add(1);
      });
    }
    json_ ? PrintJson(statistics) : Print(statistics);
  }

  void Print(const Statistics& statistics) const {
    std::cout << database_ << ": " << Counted(statistics.records, "record") << "\n"
              << "  bytes      " << statistics.bytes << " in records (" << statistics.smallest
              << " to " << statistics.largest << " each), " << BytesOnDisk(database_)
              << " on disk\n"
              << "  shapes     " << Shapes(statistics.shapes) << "\n"
              << "  encodings  ";
    const char* separator = "";
    for (const auto& [encoding, count] : statistics.encodings) {
      std::cout << separator << encoding << " " << count;
      separator = ", ";
    }
    std::cout << "\n";
    if (statistics.boxes > 0) std::cout << "  boxes      " << statistics.boxes << "\n";
    PrintLabels(statistics.labels);
    if (statistics.broken > 0) {
      std::cout << "warning: " << Counted(statistics.broken, "record")
                << " cannot be read; caffe data verify says why\n";
    }
  }

  void PrintJson(const Statistics& statistics) const {
    JsonObject root;
    PutJson(&root, "records", statistics.records);
    PutJson(&root, "broken", statistics.broken);
    PutJson(&root, "boxes", statistics.boxes);
    PutJson(&root, "bytes", statistics.bytes);
    PutJson(&root, "smallest_record", statistics.smallest);
    PutJson(&root, "largest_record", statistics.largest);
    PutJson(&root, "bytes_on_disk", BytesOnDisk(database_));
    for (const auto& [name, counts] :
         {std::pair("shapes", &statistics.shapes), {"encodings", &statistics.encodings}}) {
      for (const auto& [key, count] : *counts) PutJson(JsonField(&root, name), key, count);
    }
    for (const auto& [label, count] : statistics.labels) {
      PutJson(JsonField(&root, "labels"), StrCat(label), count);
    }
    std::cout << FormatJson(root);
  }

  std::string database_;
  bool json_ = false;
};

const CommandRegistrar<DataStat> data_stat_registrar(
    "data-stat",
    {.purpose = Purpose::kData,
     .summary = "count a database's records, shapes and labels",
     .about = "Reads all records of a database, but decodes no JPEG images, and counts "
              "their bytes, shapes, encodings and labels.",
     .examples = "caffe data stat train_lmdb\n"
                 "caffe data stat train_lmdb --json"});

}  // namespace
}  // namespace caffe::tools
