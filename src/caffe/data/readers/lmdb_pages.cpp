#include "caffe/data/readers/lmdb_pages.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "caffe/error.hpp"
#include "caffe/io/atomic_file.hpp"

namespace caffe::data {
namespace {

// LMDB stores numbers in native byte order; 32-bit systems use another format.
static_assert(sizeof(size_t) == 8 && std::endian::native == std::endian::little);

// Page layout: u64 number, u16 pad, u16 flags; then u16 lower and upper bound of its free space or,
// in the first page of an overflow value, u32 number of pages. Then the u16 offsets of the nodes;
// the nodes themselves begin at `upper`.
constexpr size_t kPageHeader = 16;
constexpr uint16_t kBranch = 0x01, kLeaf = 0x02, kOverflow = 0x04, kMetaPage = 0x08;
// Node layout: u32 value size (in a branch: u48 child page, which extends into the flags), u16
// flags, u16 key size; then key and value.
constexpr size_t kNodeHeader = 8;
constexpr uint16_t kBigValue = 0x01, kDuplicates = 0x04;
// Contents of a meta page after its header.
constexpr uint32_t kMagic = 0xBEEFC0DE, kVersion = 1;
constexpr size_t kMagicAt = 16, kVersionAt = 20, kPageBytesAt = 40, kFlagsAt = 92, kEntriesAt = 120,
                 kRootAt = 128, kLastPageAt = 136, kTransactionAt = 144, kMetaEnd = 152;
// Limits of LMDB itself.
constexpr size_t kMostDepth = 32;
constexpr uint64_t kLeastPageBytes = 256, kMostPageBytes = 65536;

template <typename T>
T NumberAt(std::string_view bytes, size_t at) {
  T number;
  std::memcpy(&number, bytes.data() + at, sizeof(T));
  return number;
}

std::optional<LmdbMeta> ParseMeta(std::string_view page) {
  const auto page_bytes = NumberAt<uint32_t>(page, kPageBytesAt);
  const bool is_sound = (NumberAt<uint16_t>(page, 10) & kMetaPage) != 0 &&
                        NumberAt<uint32_t>(page, kMagicAt) == kMagic &&
                        NumberAt<uint32_t>(page, kVersionAt) == kVersion &&
                        kLeastPageBytes <= page_bytes && page_bytes <= kMostPageBytes &&
                        std::has_single_bit(page_bytes);
  if (!is_sound) return std::nullopt;
  return LmdbMeta{.page_bytes = page_bytes,
                  .last_page = NumberAt<uint64_t>(page, kLastPageAt),
                  .transaction = NumberAt<uint64_t>(page, kTransactionAt),
                  .entries = NumberAt<uint64_t>(page, kEntriesAt),
                  .root = NumberAt<uint64_t>(page, kRootAt),
                  .flags = NumberAt<uint16_t>(page, kFlagsAt)};
}

}  // namespace

FileMap::FileMap(const std::string& file, uint64_t bytes) : bytes_(bytes) {
  const int descriptor = open(file.c_str(), O_RDONLY | O_CLOEXEC);
  void* const data =
      descriptor < 0 ? MAP_FAILED : mmap(nullptr, bytes, PROT_READ, MAP_SHARED, descriptor, 0);
  const int error = errno;
  if (descriptor >= 0) close(descriptor);
  if (data == MAP_FAILED) throw IoError(StrCat(file, ": cannot map: ", ErrnoText(error)));
  data_ = static_cast<const char*>(data);
}

FileMap::~FileMap() {
  munmap(const_cast<char*>(data_), bytes_);
}

uint64_t LmdbMeta::used_bytes() const {
  return last_page < kNoPage / kMostPageBytes - 1 ? (last_page + 1) * page_bytes : kNoPage;
}

std::vector<LmdbMeta> ReadLmdbMetas(const std::string& file) {
  RequireNoPipe(file);
  std::vector<LmdbMeta> metas;
  std::ifstream stream(file, std::ios::binary);
  if (!stream) throw IoError(StrCat(file, ": cannot open: ", ErrnoText(errno)));
  // The first meta page contains the page size, and so the position of the second.
  for (uint64_t at = 0; metas.size() < 2; at += metas.back().page_bytes) {
    std::array<char, kMetaEnd> page;
    stream.seekg(static_cast<std::streamoff>(at)).read(page.data(), page.size());
    const std::optional<LmdbMeta> meta =
        stream ? ParseMeta({page.data(), page.size()}) : std::nullopt;
    const bool is_alike = metas.empty() || !meta || meta->page_bytes == metas[0].page_bytes;
    if (!meta || !is_alike) {
      throw IoError(StrCat(file, ": not an LMDB database, or damaged: page ", metas.size(),
                           " is not a header of version ", kVersion, "; make or copy it again"));
    }
    metas.push_back(*meta);
  }
  const uint64_t found = std::filesystem::file_size(file);
  const uint64_t wanted = std::max(metas[0].used_bytes(), metas[1].used_bytes());
  if (found < wanted) {
    throw IoError(StrCat(file, ": truncated, ", found, " of ", wanted,
                         " bytes are there; copy or make the database again"));
  }
  return metas;
}

struct LmdbPages::Header {
  uint64_t page;
  uint16_t flags;
  size_t nodes;  // only for branches and leaves
};

LmdbPages::LmdbPages(std::string file, const FileMap* map, const LmdbMeta& meta)
    : file_(std::move(file)), map_(map), meta_(meta) {
  if (meta.flags != 0) {
    throw IoError(StrCat(file_, ": has flags ", meta.flags,
                         " (keys in another order, or several values of one); no Caffe writes "
                         "such databases: copy its records into a plain one"));
  }
  CAFFE_ASSERT(meta.used_bytes() <= map->bytes(), file_);
  const uint64_t most = meta.used_bytes() / (kNodeHeader + sizeof(uint16_t));
  if (meta.entries > most) {
    throw IoError(StrCat(file_, ": is damaged: says that it has ", meta.entries,
                         " records, and has room for ", most, "; make it again"));
  }
}

void LmdbPages::ThrowDamaged(uint64_t page, const std::string& what) const {
  throw IoError(StrCat(file_, ": is damaged: page ", page, " ", what, "; make it again"));
}

std::string_view LmdbPages::BytesOf(const Header& header) const {
  return {map_->data() + header.page * meta_.page_bytes, meta_.page_bytes};
}

LmdbPages::Header LmdbPages::HeaderOf(uint64_t page) const {
  if (page > meta_.last_page) {
    ThrowDamaged(page, StrCat("is after the last, ", meta_.last_page));
  }
  Header header{.page = page, .flags = 0, .nodes = 0};
  const std::string_view bytes = BytesOf(header);
  const auto number = NumberAt<uint64_t>(bytes, 0);
  if (number != page) ThrowDamaged(page, StrCat("says that it is page ", number));
  header.flags = NumberAt<uint16_t>(bytes, 10);
  if ((header.flags & (kBranch | kLeaf)) == 0) return header;
  const auto lower = NumberAt<uint16_t>(bytes, 12);
  if (lower < kPageHeader || lower > meta_.page_bytes) {
    ThrowDamaged(page, StrCat("says that its table ends at byte ", lower));
  }
  header.nodes = (lower - kPageHeader) / sizeof(uint16_t);
  return header;
}

std::string_view LmdbPages::NodeAt(const Header& header, size_t node) const {
  const std::string_view bytes = BytesOf(header);
  const auto at = NumberAt<uint16_t>(bytes, kPageHeader + node * sizeof(uint16_t));
  if (at + kNodeHeader > bytes.size() ||
      at + kNodeHeader + NumberAt<uint16_t>(bytes, at + 6) > bytes.size()) {
    ThrowDamaged(header.page, StrCat("has a record at byte ", at, " that it does not hold"));
  }
  return bytes.substr(at);
}

std::string_view LmdbPages::KeyOf(const Header& header, size_t node) const {
  const std::string_view bytes = NodeAt(header, node);
  return bytes.substr(kNodeHeader, NumberAt<uint16_t>(bytes, 6));
}

uint64_t LmdbPages::ChildOf(const Header& header, size_t node) const {
  return NumberAt<uint64_t>(NodeAt(header, node), 0) & 0xFFFF'FFFF'FFFF;
}

// Returns a value stored in overflow pages.
std::string_view LmdbPages::OverflowOf(uint64_t page, uint64_t bytes) const {
  const Header header = HeaderOf(page);
  if ((header.flags & kOverflow) == 0) ThrowDamaged(page, "holds no large value");
  const uint64_t begin = page * meta_.page_bytes + kPageHeader;
  if (bytes > meta_.used_bytes() - begin) {
    ThrowDamaged(page, StrCat("begins a value of ", bytes, " bytes, which end after the file"));
  }
  return {map_->data() + begin, bytes};
}

LmdbPages::Node LmdbPages::Current() const {
  const auto [page, node] = path_.back();
  const Header header = HeaderOf(page);
  const std::string_view bytes = NodeAt(header, node), key = KeyOf(header, node);
  const std::string_view rest = bytes.substr(kNodeHeader + key.size());
  const auto value_bytes = NumberAt<uint32_t>(bytes, 0);
  const auto flags = NumberAt<uint16_t>(bytes, 4);
  const bool is_big = (flags & kBigValue) != 0;
  if ((flags & kDuplicates) != 0 || (is_big ? sizeof(uint64_t) : value_bytes) > rest.size()) {
    ThrowDamaged(page, StrCat("has record ", node, " of ", value_bytes, " bytes and flags ", flags,
                              ", which it cannot hold"));
  }
  if (is_big) return {key, OverflowOf(NumberAt<uint64_t>(rest, 0), value_bytes)};
  return {key, rest.substr(0, value_bytes)};
}

template <typename Choose>
void LmdbPages::Descend(uint64_t page, const Choose& choose) {
  while (true) {
    if (path_.size() == kMostDepth) ThrowDamaged(page, "lies too deep");
    const Header header = HeaderOf(page);
    const bool is_leaf = (header.flags & kLeaf) != 0;
    if (header.nodes == 0) ThrowDamaged(page, "is empty");
    path_.push_back({page, choose(header)});
    if (is_leaf) return;
    page = ChildOf(header, path_.back().node);
  }
}

std::optional<LmdbPages::Node> LmdbPages::First() {
  path_.clear();
  if (meta_.root == LmdbMeta::kNoPage) return std::nullopt;
  Descend(meta_.root, [](const Header&) { return size_t{0}; });
  return Current();
}

std::optional<LmdbPages::Node> LmdbPages::Last() {
  path_.clear();
  if (meta_.root == LmdbMeta::kNoPage) return std::nullopt;
  Descend(meta_.root, [](const Header& header) { return header.nodes - size_t{1}; });
  return Current();
}

std::optional<LmdbPages::Node> LmdbPages::Next() {
  while (!path_.empty()) {
    Place& place = path_.back();
    const Header header = HeaderOf(place.page);
    if (++place.node >= header.nodes) {
      path_.pop_back();
      continue;
    }
    if ((header.flags & kLeaf) == 0) {
      Descend(ChildOf(header, place.node), [](const Header&) { return size_t{0}; });
    }
    return Current();
  }
  return std::nullopt;
}

std::optional<LmdbPages::Node> LmdbPages::Find(std::string_view key) {
  path_.clear();
  if (meta_.root == LmdbMeta::kNoPage) return std::nullopt;
  // Selects the last node whose key is not greater; the first node of a branch has no key.
  Descend(meta_.root, [&](const Header& header) {
    size_t low = 0, high = header.nodes;
    while (high - low > 1) {
      const size_t middle = low + (high - low) / 2;
      (KeyOf(header, middle) <= key ? low : high) = middle;
    }
    return low;
  });
  const Node node = Current();
  if (node.key != key) return std::nullopt;
  return node;
}

}  // namespace caffe::data
