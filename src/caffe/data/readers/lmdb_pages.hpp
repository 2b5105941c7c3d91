// Reads the pages of an LMDB (format version 1) with validation. LMDB's own cursor trusts pages,
// and crashes if a damaged one points beyond the file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace caffe::data {

// A read-only memory map of the beginning of a file.
class FileMap {
 public:
  // Throws IoError.
  FileMap(const std::string& file, uint64_t bytes);
  ~FileMap();
  FileMap(const FileMap&) = delete;
  FileMap& operator=(const FileMap&) = delete;

  const char* data() const { return data_; }
  uint64_t bytes() const { return bytes_; }

 private:
  const char* data_;
  const uint64_t bytes_;
};

// The description of the main database in a meta page. A file has two meta pages, for the last two
// transactions.
struct LmdbMeta {
  uint64_t page_bytes;
  uint64_t last_page;
  uint64_t transaction;
  uint64_t entries;
  uint64_t root;  // kNoPage in an empty database
  uint16_t flags;

  static constexpr uint64_t kNoPage = ~uint64_t{0};

  uint64_t used_bytes() const;  // saturates
};

// Returns the meta pages. Throws IoError, naming the file, if one is invalid or if the file is
// shorter than one of them says, because LMDB itself would crash on it.
std::vector<LmdbMeta> ReadLmdbMetas(const std::string& file);

// A cursor over the records of one transaction. Throws IoError, naming the file and the page, for
// an invalid page. Does not detect cycles of pages: callers must count records.
class LmdbPages {
 public:
  struct Node {
    std::string_view key;
    std::string_view value;
  };

  // `map` must contain all pages of `meta`, and outlive the cursor and its nodes.
  LmdbPages(std::string file, const FileMap* map, const LmdbMeta& meta);

  // Each moves the cursor; empty at the end, or if there is no such key.
  std::optional<Node> First();
  std::optional<Node> Last();
  std::optional<Node> Next();
  std::optional<Node> Find(std::string_view key);

 private:
  // A page of the tree, and the index of a node in it.
  struct Place {
    uint64_t page;
    size_t node;
  };
  struct Header;

  Header HeaderOf(uint64_t page) const;
  std::string_view BytesOf(const Header& header) const;
  std::string_view NodeAt(const Header& header, size_t node) const;
  std::string_view KeyOf(const Header& header, size_t node) const;
  uint64_t ChildOf(const Header& header, size_t node) const;
  std::string_view OverflowOf(uint64_t page, uint64_t bytes) const;
  Node Current() const;
  // Descends from `page` to a leaf; choose(header) selects a node of each page.
  template <typename Choose>
  void Descend(uint64_t page, const Choose& choose);
  [[noreturn]] void ThrowDamaged(uint64_t page, const std::string& what) const;

  const std::string file_;
  const FileMap* const map_;
  const LmdbMeta meta_;
  std::vector<Place> path_;  // from the root to a leaf
};

}  // namespace caffe::data
