// caffe data export: writes the images of a database into one folder per label.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <filesystem>
#include <iostream>
#include <map>
#include <new>
#include <sstream>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "caffe/core/counted.hpp"
#include "caffe/core/file_descriptor.hpp"
#include "caffe/core/printable.hpp"
#include "caffe/data/parsers/datum_view.hpp"
#include "caffe/data/parsers/image_codec.hpp"
#include "caffe/error.hpp"
#include "caffe/io/atomic_file.hpp"
#include "caffe/io/atomic_folder.hpp"
#include "caffe/io/class_names.hpp"
#include "caffe/io/json.hpp"
#include "tools/caffe/command.hpp"
#include "tools/caffe/options.hpp"
#include "tools/caffe/progress.hpp"
#include "tools/caffe/stored_record.hpp"
#include "tools/interruption.hpp"

namespace caffe::tools {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMostReasons = 20;  // listed in the text output; JSON lists all
constexpr size_t kLongestName = 255;
constexpr size_t kRoomForNumber = 16;  // in a file's name, for the "_2" of a second file

// `text` as the name of one file or folder. A slash would lead to another folder, and a leading dot
// would make "..", or a hidden file, which `caffe data import` ignores.
std::string SafeName(std::string_view text) {
  std::string name(text.substr(0, kLongestName));
  const bool has_controls = HasControlCharacters(name);
  for (char& letter : name) {
    const auto byte = static_cast<unsigned char>(letter);
    const bool is_control = byte < 0x20 || byte == 0x7f || (has_controls && byte >= 0x80);
    if (letter == '/' || letter == '\\' || is_control) letter = '_';
  }
  if (name.starts_with('.')) name.front() = '_';
  return name.empty() ? "_" : name;
}

struct FileName {
  std::string stem, extension;
};

// Keeps the key's extension if it is one of the format's. An unknown format ("") gets none.
FileName FileNameOf(std::string_view key, const std::string& format) {
  static const std::map<std::string, std::string> kOtherSpelling = {{"jpg", ".jpeg"},
                                                                    {"tiff", ".tif"}};
  FileName name{.stem = SafeName(key), .extension = format.empty() ? "" : "." + format};
  const fs::path path(name.stem);
  std::string ending = path.extension().string();
  std::transform(ending.begin(), ending.end(), ending.begin(),
                 [](unsigned char letter) { return static_cast<char>(std::tolower(letter)); });
  const auto other = kOtherSpelling.find(format);
  if (!format.empty() &&
      (ending == name.extension || (other != kOtherSpelling.end() && ending == other->second))) {
    name.extension = path.extension().string();
    name.stem = path.stem().string();
  }
  name.stem.resize(
      std::min(name.stem.size(), kLongestName - kRoomForNumber - name.extension.size()));
  return name;
}

// The file that one record becomes.
struct Exported {
  std::string error;  // why the record is left out; empty if it is not
  bool lacks_memory = false;
  int label = 0;
  std::string format;
  std::string_view file;  // in the record or in `png`
  std::string png;
};

// A Datum has planes, a PNG file interleaved pixels.
std::string PngOf(const data::DatumView& datum) {
  const data::ImageExtents& extents = datum.extents;
  const int channels = extents.channels;
  if (channels != 1 && channels != 3 && channels != 4) {
    throw IoError(StrCat("not an image: ", extents,
                         " (channels x height x width), but a PNG file has 1, 3 or 4 channels"));
  }
  data::Image image{.extents = extents, .pixels = {}};
  image.pixels.resize(datum.data.size());
  const size_t pixels = datum.data.size() / static_cast<size_t>(channels);
  for (size_t c = 0; c < static_cast<size_t>(channels); ++c) {
    for (size_t i = 0; i < pixels; ++i) {
      image.pixels[i * static_cast<size_t>(channels) + c] =
          static_cast<uint8_t>(datum.data[c * pixels + i]);
    }
  }
  return data::EncodeImage(image, "png");
}

void ExportImage(std::string_view value, Exported* exported) {
  const StoredRecord stored = ReadStoredRecord(value, /*decode=*/true);
  if (stored.has_boxes) {
    throw IoError("an image with boxes, which has no label of its own");
  }
  std::vector<float> floats;
  const data::DatumView datum = data::ParseDatum(value, &floats);
  if (datum.floats != nullptr) {
    throw IoError(StrCat("not an image: ", datum.extents.count(), " floats"));
  }
  if (!datum.label_numbers.empty()) {
    throw IoError(StrCat("an image whose label is ", datum.label_numbers.size(),
                         " numbers (float_data), which name no folder"));
  }
  exported->label = datum.label;
  if (datum.encoded) {
    exported->file = datum.data;
    exported->format = stored.encoding == "other" ? "" : stored.encoding;
  } else {
    exported->png = PngOf(datum);
    exported->format = "png";
  }
}

Exported ExportRecord(const data::Record& record) {
  Exported exported;
  try {
    ExportImage(record.value, &exported);
  } catch (const std::bad_alloc&) {
    exported.lacks_memory = true;  // not the record's fault
  } catch (const std::exception& error) {
    exported.error = error.what();
  }
  return exported;
}

// Returns false if a file of this name already exists. `name` is for messages.
bool WriteNewFile(const std::string& path, std::string_view bytes, const std::string& name) {
  const FileDescriptor file(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
  if (!file && errno == EEXIST) return false;
  if (!file) {
    const int error = errno;
    throw IoError(StrCat(name, ": cannot create: ", ErrnoText(error)));
  }
  for (std::string_view rest = bytes; !rest.empty();) {
    const ssize_t written = ::write(file.get(), rest.data(), rest.size());
    if (written < 0 && errno != EINTR) ThrowWriteError(name, errno, bytes.size());
    if (written > 0) rest.remove_prefix(static_cast<size_t>(written));
  }
  return true;
}

// The folders of the labels, which get their final place when all is written.
class LabelFolders {
 public:
  LabelFolders(const std::string& path, const ClassNames& names, const std::string& names_file)
      : path_(path), names_file_(names_file), folder_(path) {
    if (names_file.empty()) return;
    std::map<std::string, int> labels;
    for (size_t i = 0; i < names.names().size(); ++i) {
      if (names.names()[i].empty()) continue;
      const int label = static_cast<int>(i);
      const std::string name = SafeName(names.names()[i]);
      const auto [other, is_new] = labels.emplace(name, label);
      Require(is_new, names_file, ": the labels ", other->second, " and ", label,
              " would have one folder, '", Printable(name), "'; give them different names");
      MakeFolder(label, name);
    }
  }

  void Put(const data::Record& record, const Exported& exported) {
    auto folder = folders_.find(exported.label);
    if (folder == folders_.end()) {
      Require(names_file_.empty(), names_file_, ": has no name for label ", exported.label,
              " of record '", Printable(record.key), "'; add it, or leave --labels out");
      MakeFolder(exported.label, StrCat(exported.label));
      folder = folders_.find(exported.label);
    }
    const FileName name = FileNameOf(record.key, exported.format);
    const std::string_view bytes = exported.png.empty() ? exported.file : exported.png;
    std::string number;
    for (uint64_t copy = 2;; ++copy) {
      const std::string file =
          "/" + folder->second.name + "/" + name.stem + number + name.extension;
      if (WriteNewFile(folder_.temporary_path() + file, bytes, path_ + file)) break;
      number = StrCat("_", copy);
    }
    ++folder->second.images;
  }

  // Makes everything durable and gives it its name.
  void Finish() {
    if (names_file_.empty()) AlignNumbers();
    for (const auto& entry : fs::recursive_directory_iterator(folder_.temporary_path())) {
      CheckInterrupted();
      Synchronize(entry.path().string(), entry.is_directory() ? O_RDONLY : O_WRONLY);
    }
    folder_.Commit();
  }

  struct Folder {
    std::string name;
    uint64_t images = 0;
  };
  // By label.
  const std::map<int, Folder>& folders() const { return folders_; }

 private:
  void MakeFolder(int label, const std::string& name) {
    std::error_code error;
    fs::create_directory(folder_.temporary_path() + "/" + name, error);
    if (error) throw IoError(StrCat(path_, "/", name, ": cannot create: ", error.message()));
    folders_[label] = {.name = name};
  }

  // Gives all numbers the same width, because `caffe data import` sorts names: 10 would precede 2.
  void AlignNumbers() {
    const size_t width = folders_.empty() ? 0 : StrCat(folders_.rbegin()->first).size();
    for (auto& [label, folder] : folders_) {
      if (label < 0 || folder.name.size() >= width) continue;
      const std::string name = std::string(width - folder.name.size(), '0') + folder.name;
      const std::string root = folder_.temporary_path() + "/";
      std::error_code error;
      fs::rename(root + folder.name, root + name, error);
      if (error) throw IoError(StrCat(path_, "/", name, ": cannot rename: ", error.message()));
      folder.name = name;
    }
  }

  void Synchronize(const std::string& path, int mode) const {
    const FileDescriptor file(::open(path.c_str(), mode | O_CLOEXEC));
    if (file && ::fsync(file.get()) == 0) return;
    const int error = errno;
    throw IoError(StrCat(path_, ": cannot make it durable: ", ErrnoText(error)));
  }

  const std::string path_, names_file_;
  AtomicFolder folder_;
  std::map<int, Folder> folders_;
};

// Refuses a path that has content; removes an empty folder, whose place the new one takes.
void TakePlace(const std::string& path) {
  std::error_code error;
  const fs::file_status status = fs::symlink_status(path, error);
  if (!fs::exists(status)) return;
  Require(fs::is_directory(status), path,
          ": already exists and is not a folder; choose another name");
  Require(fs::is_empty(path, error) && !error, path,
          ": has content already; give an empty folder, or a name that is not taken");
  fs::remove(path, error);
  if (error) throw IoError(StrCat(path, ": cannot be replaced: ", error.message()));
}

class DataExport : public Command {
 public:
  explicit DataExport(CLI::App& app) {
    app.add_option("DB", database_, "The LMDB or LevelDB")->type_name("FOLDER");
    app.add_option("FOLDER", target_, "The folder to make, with a folder for each label")
        ->type_name("FOLDER");
    app.add_option("--labels", labels_,
                   "Names of the labels, one per line, or a LabelMap; without it, the folders are "
                   "named by number")
        ->type_name("FILE");
    AddJsonFlag(app, &json_);
  }

  void Run() override {
    Require(!database_.empty() && !target_.empty(),
            "give a database and a folder: caffe data export DB FOLDER");
    while (target_.size() > 1 && target_.ends_with('/')) target_.pop_back();
    RunInterruptible([&] { ExportAll(); });
  }

 private:
  struct LeftOutRecord {
    std::string key, reason;
  };

  void ExportAll() {
    const auto reader = OpenDatabase(database_);
    const ClassNames names = labels_.empty() ? ClassNames() : ClassNames(labels_);
    TakePlace(target_);
    LabelFolders folders(target_, names, labels_);
    {
      Progress progress("records", reader->count());
      ScanRecords(*reader, ExportRecord, [&](const data::Record& record, const Exported& exported) {
        if (exported.lacks_memory) throw std::bad_alloc();
        progress.Add(1);
        if (exported.error.empty()) {
          folders.Put(record, exported);
          ++images_;
        } else {
          left_out_.push_back({Printable(record.key), exported.error});
        }
      });
    }
    if (images_ == 0) {
      throw IoError(StrCat(database_,
                           ": holds no image that can be exported; the first record is '",
                           left_out_.front().key, "': ", left_out_.front().reason));
    }
    folders.Finish();
    std::cout << (json_ ? FormatJson(ToJson(folders)) : ToText(folders));
    if (!left_out_.empty()) {
      throw IoError(StrCat(database_, ": ", left_out_.size(), " of ", images_ + left_out_.size(),
                           " records were left out"));
    }
  }

  std::string ToText(const LabelFolders& folders) const {
    std::ostringstream text;
    text << database_ << " -> " << target_ << ": " << Counted(images_, "image") << " in "
         << Counted(folders.folders().size(), "folder") << "\n";
    if (!left_out_.empty()) {
      text << "  left out  " << Counted(left_out_.size(), "record") << "\n";
    }
    for (size_t i = 0; i < std::min(left_out_.size(), kMostReasons); ++i) {
      text << "    '" << left_out_[i].key << "': " << Printable(left_out_[i].reason) << "\n";
    }
    if (left_out_.size() > kMostReasons) {
      text << "    and " << left_out_.size() - kMostReasons << " more; --json lists all\n";
    }
    return text.str();
  }

  JsonObject ToJson(const LabelFolders& folders) const {
    JsonObject root;
    PutJson(&root, "folder", target_);
    PutJson(&root, "images", images_);
    for (const auto& [label, folder] : folders.folders()) {
      JsonObject* one = AddJson(&root, "classes");
      PutJson(one, "label", label);
      PutJson(one, "folder", folder.name);
      PutJson(one, "images", folder.images);
    }
    MakeJsonList(&root, "left_out");
    for (const LeftOutRecord& record : left_out_) {
      JsonObject* one = AddJson(&root, "left_out");
      PutJson(one, "key", record.key);
      PutJson(one, "reason", record.reason);
    }
    return root;
  }

  std::string database_, target_, labels_;
  bool json_ = false;
  uint64_t images_ = 0;
  std::vector<LeftOutRecord> left_out_;
};

const CommandRegistrar<DataExport> data_export_registrar(
    "data-export",
    {.purpose = Purpose::kData,
     .summary = "write the images of a database into folders",
     .about =
         "Writes the images of a database into a new folder, which has a folder for each "
         "label; caffe data import makes a database from it again. Compressed images are "
         "written byte for byte, raw ones as PNG, with the keys as names. Records that are not "
         "images or cannot be decoded are left out and named, and the exit status is then 1.",
     .examples = "caffe data export photos_lmdb photos --labels=photos_lmdb/labels.txt\n"
                 "caffe data export photos_lmdb photos --json"});

}  // namespace
}  // namespace caffe::tools
