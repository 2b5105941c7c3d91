#include "caffe/data/readers/record_reader.hpp"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <map>
#include <set>

#include "caffe/core/paths.hpp"
#include "caffe/data/readers/database.hpp"
#include "caffe/error.hpp"

namespace caffe::data {
namespace {

std::map<std::string, Database>& Databases() {
  static std::map<std::string, Database> databases;
  return databases;
}

const Database& DatabaseOf(DataParameter::DB backend) {
  for (const auto& [name, database] : Databases()) {
    if (database.backend == backend) return database;
  }
  throw InternalError(StrCat("no database is registered for ", DataParameter::DB_Name(backend)));
}

std::string ToLower(std::string_view text) {
  std::string lower(text);
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](unsigned char letter) { return static_cast<char>(std::tolower(letter)); });
  return lower;
}

// Joins the texts of all databases to "a or b or c"; leaves out empty ones.
template <typename Text>
std::string Alternatives(Text&& text) {
  std::string all;
  for (const auto& [name, database] : Databases()) {
    const std::string one = text(name, database);
    if (!one.empty()) all += (all.empty() ? "" : " or ") + one;
  }
  return all;
}

// The kind of database that a folder is, by its marker; null if it is none.
const Database* DatabaseIn(const std::filesystem::path& folder) {
  for (const auto& [name, database] : Databases()) {
    if (database.marker != nullptr && !IsMissing(folder / database.marker)) return &database;
  }
  return nullptr;
}

// The databases in the folders of `path` and in theirs, as in a model's folder: "a or b", sorted.
// Empty if there are none, or too many files to look at.
std::string DatabasesBelow(const std::string& path) {
  namespace fs = std::filesystem;
  constexpr int kMostEntries = 1000, kMostNamed = 4;
  std::error_code error;
  std::set<std::string> found;
  int entries = 0;
  for (fs::recursive_directory_iterator entry(path, error), end; !error && entry != end;
       entry.increment(error)) {
    if (++entries > kMostEntries) return "";
    if (!entry->is_directory(error)) continue;
    if (DatabaseIn(entry->path()) != nullptr) found.insert(entry->path().string());
    if (entry.depth() == 1) entry.disable_recursion_pending();
  }
  if (found.size() > kMostNamed) return "";
  std::string names;
  for (const std::string& name : found) names += (names.empty() ? "" : " or ") + name;
  return names;
}

}  // namespace

DatabaseRegistrar::DatabaseRegistrar(const std::string& name, const Database& database) {
  const bool is_new = Databases().emplace(name, database).second;
  CAFFE_ASSERT(is_new, "database '", name, "' is registered twice");
}

std::unique_ptr<RecordReader> OpenRecordReader(DataParameter::DB backend, const std::string& path) {
  if (const Database* database = DatabaseIn(path)) return database->open(path);
  // The backend is often left at its default, so the default says nothing about the intention.
  if (backend != DataParameter().backend()) return DatabaseOf(backend).open(path);
  const std::string names = Alternatives([](const std::string& name, const Database& database) {
    return database.marker == nullptr ? "" : name;
  });
  const std::string markers = Alternatives([](auto&, const Database& database) {
    return std::string(database.marker == nullptr ? "" : database.marker);
  });
  const std::string below = DatabasesBelow(path);
  if (!below.empty()) throw IoError(StrCat(path, ": no ", names, " database here; give ", below));
  throw IoError(StrCat(path, ": no ", names, " database here; give the folder that holds ", markers,
                       IsFolder(path)
                           ? ", or train with data_param { backend: FOLDER } if it has a folder "
                             "of images for each class"
                           : ""));
}

std::unique_ptr<RecordWriter> CreateRecordWriter(DataParameter::DB backend,
                                                 const std::string& path) {
  return DatabaseOf(backend).create(path);
}

DataParameter::DB ParseBackend(std::string_view name) {
  for (const auto& [known, database] : Databases()) {
    if (ToLower(known) == ToLower(name)) return database.backend;
  }
  throw InvalidArgument(
      StrCat("unknown backend '", name, "'; give ",
             Alternatives([](const std::string& known, auto&) { return ToLower(known); })));
}

}  // namespace caffe::data
