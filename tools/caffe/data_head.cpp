// caffe data head: prints the first records of a database.
#include <iomanip>
#include <iostream>

#include "caffe/core/printable.hpp"
#include "caffe/error.hpp"
#include "caffe/io/json.hpp"
#include "tools/caffe/command.hpp"
#include "tools/caffe/options.hpp"
#include "tools/caffe/stored_record.hpp"

namespace caffe::tools {
namespace {

// "3", or "3, 7 (boxes)".
std::string LabelsOf(const StoredRecord& record) {
  std::string text;
  for (const int label : record.labels) text += StrCat(text.empty() ? "" : ", ", label);
  return record.has_boxes ? text + " (boxes)" : text;
}

void Print(const std::string& key, const StoredRecord& record) {
  std::cout << "'" << key << "'  label " << LabelsOf(record) << "  " << record.extents << "  "
            << record.encoding << "  " << record.bytes << " bytes\n";
}

void Put(const std::string& key, const StoredRecord& record, JsonObject* one) {
  PutJson(one, "key", key);
  MakeJsonList(one, "labels");
  for (const int label : record.labels) AddJson(one, "labels", double(label));
  PutJson(one, "has_boxes", record.has_boxes);
  PutJson(one, "shape", StrCat(record.extents));
  PutJson(one, "encoding", record.encoding);
  PutJson(one, "bytes", record.bytes);
}

class DataHead : public Command {
 public:
  explicit DataHead(CLI::App& app) {
    app.add_option("DB", database_, "The LMDB or LevelDB")->type_name("FOLDER");
    app.add_option_function<int>(
           "--n",
           [this](int value) {
             Require(value > 0, "-n is ", value, "; it must be at least 1");
             count_ = value;
           },
           "How many records to show")
        ->type_name("N")
        ->default_str("5");
    AddJsonFlag(app, &json_);
  }

  void Run() override {
    const auto reader = OpenDatabase(database_);
    JsonObject report;
    data::Record record;
    int shown = 0;
    for (bool found = reader->First(&record); found && shown < count_;
         found = reader->Next(&record), ++shown) {
      const std::string key = Printable(record.key);
      const StoredRecord stored = WithContext(StrCat(database_, ": record '", key, "'"), [&] {
        return ReadStoredRecord(record.value, /*decode=*/false);
      });
      if (!json_) Print(key, stored);
      Put(key, stored, AddJson(&report, "records"));
    }
    if (json_) std::cout << FormatJson(report);
  }

 private:
  std::string database_;
  int count_ = 5;
  bool json_ = false;
};

const CommandRegistrar<DataHead> data_head_registrar(
    "data-head",
    {.purpose = Purpose::kData,
     .summary = "show the first records of a database",
     .about = "Shows key, label, shape (channels x height x width), encoding and size of records.",
     .examples = "caffe data head train_lmdb -n 10\n"
                 "caffe data head train_lmdb --json"});

}  // namespace
}  // namespace caffe::tools
