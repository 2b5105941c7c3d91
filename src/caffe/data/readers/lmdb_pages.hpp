// The pages of an LMDB (format version 1), read without trust. LMDB's own cursor believes what
// pages say, and ends the process where a damaged one points behind the file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace caffe::data {

// The beginning of a file in memory, for reading.
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

// What a meta page says of the main database. A file has two, for the last two transactions.
struct LmdbMeta {
  uint64_t page_bytes;
  uint64_t last_page;
  uint64_t transaction;
  uint64_t entries;
  uint64_t root;  // kNoPage in an empty database
  uint16_t flags;

  static constexpr uint64_t kNoPage = ~uint64_t{0};

  uint64_t used_bytes() const;  // saturating
};

// Those of the file that are sound. Throws IoError, naming the file, where there are none, or the
// file is shorter than one says: what LMDB itself would fall over.
std::vector<LmdbMeta> ReadLmdbMetas(const std::string& file);

// A cursor over the records of one transaction. Throws IoError, naming the file and the page, where
// a page is not what it should be. Pages that form a circle have no end: whoever reads counts.
class LmdbPages {
 public:
  struct Node {
    std::string_view key;
    std::string_view value;
  };

  // The map has to hold all pages of `meta`, and to outlive the cursor and its nodes.
  LmdbPages(std::string file, const FileMap* map, const LmdbMeta& meta);

  // Each moves; nothing at the end, or where no key is like that.
  std::optional<Node> First();
  std::optional<Node> Last();
  std::optional<Node> Next();
  std::optional<Node> Find(std::string_view key);

 private:
  // A page of the tree, and the place of a node in it.
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
  // Goes down from `page` to a leaf; choose(header) says by which node.
  template <typename Choose>
  void Descend(uint64_t page, const Choose& choose);
  [[noreturn]] void ThrowDamaged(uint64_t page, const std::string& what) const;

  const std::string file_;
  const FileMap* const map_;
  const LmdbMeta meta_;
  std::vector<Place> path_;  // from the root to a leaf
};

}  // namespace caffe::data
