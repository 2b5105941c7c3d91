#include "tools/caffe/model_card.hpp"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>

#include "caffe/error.hpp"
#include "caffe/io/atomic_file.hpp"

namespace caffe::tools {
namespace {

namespace fs = std::filesystem;

// The fields of a head, in order.
using Fields = std::multimap<std::string, std::string>;

std::string Trim(const std::string& text) {
  const size_t first = text.find_first_not_of(" \t\r'\""), last = text.find_last_not_of(" \t\r'\"");
  return first == std::string::npos ? "" : text.substr(first, last - first + 1);
}

// Reads "key: value" lines between two lines of dashes; empty if there are no such lines.
Fields ReadHead(const fs::path& path) {
  RequireNoPipe(path);
  std::ifstream file(path);
  Fields head;
  std::string line;
  if (!std::getline(file, line) || Trim(line) != "---") return head;
  while (std::getline(file, line) && Trim(line) != "---") {
    const size_t colon = line.find(':');
    if (colon != std::string::npos)
      head.emplace(Trim(line.substr(0, colon)), Trim(line.substr(colon + 1)));
  }
  return head;
}

fs::path ReadmeOf(const fs::path& folder) {
  const fs::path upper = folder / "README.md", lower = folder / "readme.md";
  return fs::exists(upper) || !fs::exists(lower) ? upper : lower;
}

bool IsSha1(const std::string& text) {
  return text.size() == 40 && text.find_first_not_of("0123456789abcdef") == std::string::npos;
}

Checksum ReadChecksum(const Fields& head, const std::string& readme) {
  const bool has_sha1 = head.count("sha1") > 0;
  const char* const field = has_sha1 ? "sha1" : "git_blob";
  Checksum checksum{has_sha1 ? Checksum::SHA1 : Checksum::GIT_BLOB, head.find(field)->second};
  std::transform(checksum.digits.begin(), checksum.digits.end(), checksum.digits.begin(),
                 [](unsigned char letter) { return static_cast<char>(std::tolower(letter)); });
  Require(IsSha1(checksum.digits), readme, ": ", field, " is '", checksum.digits,
          "'; a SHA-1 has 40 hexadecimal digits");
  return checksum;
}

// Throws InvalidArgument for missing or invalid fields.
ModelCard ParseCard(const fs::path& folder) {
  const std::string readme = ReadmeOf(folder).string();
  const Fields head = ReadHead(readme);
  const char* const sum = head.count("git_blob") > 0 ? "git_blob" : "sha1";
  for (const char* field : {"caffemodel", "caffemodel_url", sum}) {
    Require(head.count(field) > 0, readme, ": its head has no '", field,
            ":', so the model has no published weights; caffe fetch-weights --list names the "
            "models that have some");
  }
  ModelCard card{.folder = folder.string(),
                 .caffemodel = head.find("caffemodel")->second,
                 .urls = {},
                 .checksum = ReadChecksum(head, readme),
                 .labels = head.count("labels") > 0 ? head.find("labels")->second : ""};
  const auto [first, last] = head.equal_range("caffemodel_url");
  for (auto url = first; url != last; ++url) card.urls.push_back(url->second);
  Require(!card.caffemodel.empty() && fs::path(card.caffemodel).filename() == card.caffemodel,
          readme, ": caffemodel is '", card.caffemodel,
          "'; give the name of a file in this folder");
  return card;
}

// Folders that may hold models, in order of priority.
std::vector<fs::path> ModelFolders() {
  std::vector<fs::path> folders = {"models"};
  if (const char* root = std::getenv("CAFFE_ROOT")) folders.push_back(fs::path(root) / "models");
  std::error_code ignored;
  const fs::path program = fs::read_symlink("/proc/self/exe", ignored);
  for (fs::path up = program.parent_path(); up.has_relative_path(); up = up.parent_path()) {
    folders.push_back(up / "models");
    folders.push_back(up / "share/cortado/models");
  }
  return folders;
}

}  // namespace

ModelCard ReadModelCard(const std::string& name_or_folder) {
  if (fs::is_directory(name_or_folder)) {
    return ParseCard(fs::path(name_or_folder + "/").parent_path());
  }
  for (const fs::path& models : ModelFolders()) {
    if (fs::is_directory(models / name_or_folder)) return ParseCard(models / name_or_folder);
  }
  std::string names;
  for (const ModelCard& card : PublishedModels()) {
    names += (names.empty() ? "" : ", ") + fs::path(card.folder).filename().string();
  }
  throw InvalidArgument(StrCat(name_or_folder, ": neither a folder nor a model in models/; ",
                               names.empty() ? "give a model's folder" : "there are " + names));
}

bool HasModelCard(const std::string& folder) {
  return ReadHead(ReadmeOf(folder)).count("caffemodel_url") > 0;
}

std::vector<ModelCard> PublishedModels() {
  std::map<std::string, ModelCard> cards;
  for (const fs::path& models : ModelFolders()) {
    std::error_code ignored;
    for (const fs::directory_entry& entry : fs::directory_iterator(models, ignored)) {
      if (!HasModelCard(entry.path().string())) continue;
      cards.emplace(entry.path().filename().string(), ParseCard(entry.path()));
    }
  }
  std::vector<ModelCard> sorted;
  for (const auto& [name, card] : cards) sorted.push_back(card);
  return sorted;
}

}  // namespace caffe::tools
