// caffe data verify: checks that every record of a database can be decoded.
#include <iostream>

#include "caffe/core/counted.hpp"
#include "caffe/core/printable.hpp"
#include "caffe/error.hpp"
#include "caffe/io/json.hpp"
#include "tools/caffe/command.hpp"
#include "tools/caffe/options.hpp"
#include "tools/caffe/progress.hpp"
#include "tools/caffe/stored_record.hpp"

namespace caffe::tools {
namespace {

constexpr size_t kMostNamed = 10;

// Why a record cannot be used; empty if it can.
std::string ErrorOf(std::string_view value) {
  try {
    ReadStoredRecord(value, /*decode=*/true);
    return "";
  } catch (const std::exception& error) {
    return error.what();
  }
}

class DataVerify : public Command {
 public:
  explicit DataVerify(CLI::App& app) {
    app.add_option("DB", database_, "The LMDB or LevelDB")->type_name("FOLDER");
    AddJsonFlag(app, &json_);
  }

  void Run() override {
    RunInterruptible([&] { Verify(); });
  }

 private:
  void Verify() {
    const auto reader = OpenDatabase(database_);
    Scan(*reader);
    if (json_) std::cout << FormatJson(report_);
    if (bad_ > 0) {
      throw IoError(
          StrCat(database_, ": ", bad_, " of ", reader->count(), " records cannot be decoded"));
    }
    if (!json_) {
      std::cout << database_ << ": " << Counted(reader->count(), "record") << ", no errors\n";
    }
  }

  void Scan(data::RecordReader& reader) {
    PutJson(&report_, "records", reader.count());
    MakeJsonList(&report_, "first_bad");
    Progress progress("records", reader.count());
    ScanRecords(
        reader, [](const data::Record& record) { return ErrorOf(record.value); },
        [&](const data::Record& record, const std::string& error) {
          progress.Add(1);
          if (!error.empty()) AddBad(Printable(record.key), error);
        });
    PutJson(&report_, "bad", bad_);
  }

  void AddBad(const std::string& key, const std::string& error) {
    if (++bad_ > kMostNamed) return;
    if (!json_) std::cout << "'" << key << "': " << error << "\n";
    JsonObject* one = AddJson(&report_, "first_bad");
    PutJson(one, "key", key);
    PutJson(one, "reason", error);
  }

  std::string database_;
  bool json_ = false;
  uint64_t bad_ = 0;
  JsonObject report_;
};

const CommandRegistrar<DataVerify> data_verify_registrar(
    "data-verify", {.purpose = Purpose::kData,
                    .summary = "decode every record of a database",
                    .about = "Parses and decodes every record, and names the first bad ones by "
                             "their keys. The exit status is 1 if there is one.",
                    .examples = "caffe data verify train_lmdb\n"
                                "caffe data verify train_lmdb --json"});

}  // namespace
}  // namespace caffe::tools
