// caffe data import: makes a database from a folder of images.
#include <algorithm>
#include <charconv>
#include <cstdio>
#include <filesystem>
#include <iostream>
#include <optional>

#include "caffe/error.hpp"
#include "caffe/io/atomic_file.hpp"
#include "caffe/io/binary_format.hpp"
#include "caffe/io/text_format.hpp"
#include "tools/caffe/command.hpp"
#include "tools/caffe/image_set.hpp"
#include "tools/caffe/import_report.hpp"
#include "tools/caffe/imported_image.hpp"
#include "tools/caffe/options.hpp"
#include "tools/caffe/progress.hpp"
#include "tools/interruption.hpp"
#include "tools/parallel.hpp"

namespace caffe::tools {
namespace {

constexpr size_t kChunk = 64;         // images in memory at a time
constexpr size_t kLongestKey = 511;   // LMDB's
constexpr int kLargestSide = 65'500;  // JPEG's

int ParseSide(const std::string& text, const std::string& size) {
  int side = 0;
  const char* end = text.data() + text.size();
  const auto [parsed, error] = std::from_chars(text.data(), end, side);
  Require(error == std::errc() && parsed == end && side > 0 && side <= kLargestSide,
          "--resize is '", size, "'; give HEIGHTxWIDTH, as in 256x256");
  return side;
}

void ParseSize(const std::string& text, ImportOptions* options) {
  const size_t x = std::min(text.find('x'), text.size());
  options->height = ParseSide(text.substr(0, x), text);
  options->width = ParseSide(text.substr(std::min(x + 1, text.size())), text);
}

// LMDB limits the length of keys; the number alone makes a key unique, so the path may be cut.
std::string KeyOf(size_t number, const std::string& path) {
  char key[32];
  std::snprintf(key, sizeof key, "%08zu_", number);
  return (key + path).substr(0, kLongestKey);
}

// Line k is the name of label k, as `caffe classify --labels` and BVLC's classification expect.
std::string NamesOf(const ImageSet& set) {
  std::string lines;
  for (const auto& [label, name] : set.names) lines += name + "\n";
  return lines;
}

class DataImport : public Command {
 public:
  explicit DataImport(CLI::App& app) {
    app.add_option("FOLDER", source_,
                   "A folder that has a folder of images for each class, or a file with lines "
                   "'path label'")
        ->type_name("FOLDER");
    app.add_option("DB", database_, "The LMDB to make")->type_name("FOLDER");
    app.add_option_function<std::string>(
           "--resize", [this](const std::string& text) { ParseSize(text, &options_); },
           "Store images of this size; without it, each keeps its own")
        ->type_name("HxW");
    app.add_flag("--gray", options_.gray,
                 "Store gray images of one channel; without it, all have three");
    app.add_flag("--shuffle", shuffle_, "Store the images in a random order");
    app.add_option("--seed", seed_, "Seed for --shuffle and --val")->type_name("N");
    app.add_option_function<std::string>(
           "--val", [this](const std::string& text) { share_ = ParseShare(text); },
           "Put this share of each class into a second database, DB_val")
        ->type_name("N%");
    app.add_option("--root", root_, "Where the paths of a list begin; without it, at its folder")
        ->type_name("FOLDER");
    AddJsonFlag(app, &json_);
  }

  void Run() override {
    Require(!source_.empty() && !database_.empty(),
            "give a folder of images and a database: caffe data import FOLDER DB");
    while (database_.size() > 1 && database_.ends_with('/')) database_.pop_back();
    RunInterruptible([&] { Import(); });
  }

 private:
  // A process killed between the two renames leaves a complete training set without validation set.
  void CheckNotHalfDone() const {
    const std::string validation = database_ + "_val";
    const bool is_half_done =
        share_ > 0 && std::filesystem::exists(database_) && !std::filesystem::exists(validation);
    Require(!is_half_done, database_, ": already exists, but ", validation,
            " does not, as after an import that was killed between the two; remove ", database_,
            " and import again");
  }

  void Import() {
    CheckNotHalfDone();
    ImageSet set = ReadImageSet(source_, root_);
    if (shuffle_) Shuffle(seed_, &set.files);
    ImportReport report(set, database_);
    InterruptibleWriter training(DataParameter::LMDB, database_);
    std::vector<ImageFile> validation_files;
    std::optional<InterruptibleWriter> validation;
    if (share_ > 0) {
      validation_files = TakeShare(share_, seed_, &set.files);
      validation.emplace(DataParameter::LMDB, database_ + "_val");
      report.SetValidation(database_ + "_val");
    }
    {
      Progress progress("images", set.files.size() + validation_files.size());
      Write(set.root, set.files, &ImportReport::Add, &training, &report, &progress);
      if (report.images() == 0) ThrowNoImage(set, report);
      if (validation) {
        Write(set.root, validation_files, &ImportReport::AddValidation, &*validation, &report,
              &progress);
        WriteNames(set, validation->folder());
      }
    }
    WriteNames(set, training.folder());
    if (report.mean() != nullptr) {
      WriteBinaryProto(training.folder() + "/mean.binaryproto", report.mean()->ToProto());
    }
    // Everything that can fail is done before either database gets its final name.
    const std::string text = json_ ? FormatJson(report.ToJson()) : report.ToText();
    training.Finish();
    if (validation) validation->Finish();
    std::cout << text;
  }

  bool is_list() const { return !std::filesystem::is_directory(source_); }

  // A list file has label numbers only, which need not be 0 to n-1, so it gives no names.
  void WriteNames(const ImageSet& set, const std::string& database) const {
    if (!is_list()) WriteFileAtomically(database + "/labels.txt", NamesOf(set));
    WriteTextProto(database + "/model_info.prototxt", InfoOf(set));
  }

  // The preprocessing and labels that inference needs for a net trained with this database.
  ModelInfo InfoOf(const ImageSet& set) const {
    ModelInfo info;
    for (const auto& [label, name] : set.names) {
      if (!is_list()) info.add_label(name);
    }
    if (options_.height > 0) {
      info.mutable_resize()->set_resize_mode(ResizeParameter::WARP);
      info.mutable_resize()->set_height(static_cast<uint32_t>(options_.height));
      info.mutable_resize()->set_width(static_cast<uint32_t>(options_.width));
    }
    return info;
  }

  [[noreturn]] void ThrowNoImage(const ImageSet& set, const ImportReport& report) const {
    const LeftOut& first = report.first_broken();
    const std::string path = Prefix(set.root) + first.path;
    throw IoError(StrCat(
        source_, ": holds no image that can be read; the first is '", path, "': ", first.reason,
        is_list() ? "; --root=FOLDER says where the paths of the list begin" : ""));
  }

  static std::string Prefix(const std::string& root) {
    return root.empty() || root.ends_with('/') ? root : root + "/";
  }

  // Decodes on all cores and writes in the order of `files`.
  void Write(const std::string& root, const std::vector<ImageFile>& files,
             void (ImportReport::*add)(const ImageFile&, const ImportedImage&),
             data::RecordWriter* writer, ImportReport* report, Progress* progress) const {
    const std::string prefix = Prefix(root);
    std::vector<ImportedImage> chunk(kChunk);
    for (size_t first = 0; first < files.size(); first += kChunk) {
      CheckInterrupted();
      const size_t count = std::min(kChunk, files.size() - first);
      ParallelFor(count, [&](size_t i) {
        chunk[i] = ImportImage(prefix + files[first + i].path, files[first + i].label, options_);
      });
      for (size_t i = 0; i < count; ++i) {
        const ImageFile& file = files[first + i];
        if (!chunk[i].error.empty()) {
          report->AddBroken(file, chunk[i].error);
          continue;
        }
        writer->Put(KeyOf(first + i, file.path), chunk[i].record);
        (report->*add)(file, chunk[i]);
      }
      progress->Add(count);
    }
  }

  std::string source_, database_, root_;
  ImportOptions options_;
  bool shuffle_ = false, json_ = false;
  uint64_t seed_ = 1;
  double share_ = 0;
};

const CommandRegistrar<DataImport> data_import_registrar(
    "data-import",
    {.purpose = Purpose::kData,
     .summary = "make a database from a folder of images",
     .about = "Makes an LMDB of images that lie in one folder per class, or that a list names, and "
              "says what they are. Compressed images are stored as they are, gray and transparent "
              "ones as colour; files that cannot be read are left out and named. In the database's "
              "folder lie labels.txt, the names of the classes for caffe classify --labels, and, "
              "where all images have one shape, mean.binaryproto.",
     .examples = "caffe data import photos photos_lmdb --resize=256x256 --shuffle --val=10%\n"
                 "caffe data import list.txt photos_lmdb --root=images --json"});

}  // namespace
}  // namespace caffe::tools
