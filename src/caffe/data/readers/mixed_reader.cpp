#include "caffe/data/readers/mixed_reader.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <queue>
#include <utility>
#include <vector>

#include "caffe/error.hpp"

namespace caffe::data {
namespace {

// An epoch of repeated records is limited, because its order is in memory: half a gibibyte.
constexpr double kMostRecords = 1 << 27;

struct Part {
  std::string source;
  std::unique_ptr<RecordReader> reader;
  double weight = 0;   // of its records among all
  uint64_t uses = 0;   // of its records in an epoch
  uint32_t first = 0;  // place of its first record if the databases followed each other
};

Part PartOf(const DataParameter& reading, const std::string& source, bool has_weight,
            float weight) {
  Require(!source.empty(), "data_param { more } has no source; give the folder of the database");
  Require(!has_weight || (std::isfinite(weight) && weight > 0), "data_param: the weight of '",
          source, "' is ", weight, "; give a positive number");
  Part part{.source = source, .reader = OpenRecordReader(reading.backend(), source)};
  if (part.reader->count() == 0) throw IoError(source + ": has no records; fill it first");
  part.weight = has_weight ? weight : static_cast<double>(part.reader->count());
  return part;
}

std::vector<Part> PartsOf(const DataParameter& reading) {
  std::vector<Part> parts;
  parts.push_back(PartOf(reading, reading.source(), reading.has_weight(), reading.weight()));
  for (const DataSource& more : reading.more()) {
    Require(more.has_weight() == reading.has_weight(), "data_param: '",
            more.has_weight() ? reading.source() : more.source(), "' has no weight, and '",
            more.has_weight() ? more.source() : reading.source(),
            "' has one; give a weight to each database, or to none");
    parts.push_back(PartOf(reading, more.source(), more.has_weight(), more.weight()));
  }
  return parts;
}

// Sets how often records of each part are used. Returns their sum.
uint64_t CountUses(std::vector<Part>* parts) {
  double epoch_per_weight = 0;  // the largest that a part needs to use each of its records
  double records = 0;
  for (const Part& part : *parts) {
    const auto count = static_cast<double>(part.reader->count());
    epoch_per_weight = std::max(epoch_per_weight, count / part.weight);
    records += count;
  }
  std::vector<double> uses;  // rounding may have lost one of a part's records
  for (const Part& part : *parts) {
    uses.push_back(std::max(static_cast<double>(part.reader->count()),
                            std::round(part.weight * epoch_per_weight)));
  }
  const double sum = std::accumulate(uses.begin(), uses.end(), 0.0);
  const double most = std::max(kMostRecords, records);
  Require(sum <= most, "data_param: the weights make an epoch of ", sum,
          " records, in which each record is used; ", most,
          " are the most: make the weights more alike");
  Require(records <= std::numeric_limits<uint32_t>::max(), "data_param: ", records,
          " records are too many to mix");
  uint32_t first = 0;
  for (size_t i = 0; i < parts->size(); ++i) {
    Part& part = (*parts)[i];
    part.uses = static_cast<uint64_t>(uses[i]);
    part.first = first;
    first += static_cast<uint32_t>(part.reader->count());
  }
  return static_cast<uint64_t>(sum);
}

class MixedReader final : public RecordReader {
 public:
  explicit MixedReader(std::vector<Part> parts) : parts_(std::move(parts)) {
    order_.reserve(CountUses(&parts_));
    // Use i of n in a part is at (i + 1/2) / n of the epoch.
    using Turn = std::pair<double, size_t>;
    std::priority_queue<Turn, std::vector<Turn>, std::greater<>> turns;
    std::vector<uint64_t> used(parts_.size());
    const auto add_turn = [&](size_t part) {
      const auto uses = static_cast<double>(parts_[part].uses);
      turns.emplace((static_cast<double>(used[part]) + 0.5) / uses, part);
    };
    for (size_t part = 0; part < parts_.size(); ++part) add_turn(part);
    while (!turns.empty()) {
      const size_t part = turns.top().second;
      turns.pop();
      order_.push_back(parts_[part].first +
                       static_cast<uint32_t>(used[part] % parts_[part].reader->count()));
      if (++used[part] < parts_[part].uses) add_turn(part);
    }
  }

  uint64_t count() const override { return order_.size(); }
  bool First(Record* record) override {
    position_ = 0;
    return Read(record);
  }
  bool Next(Record* record) override {
    if (position_ + 1 >= order_.size()) return false;
    ++position_;
    return Read(record);
  }
  // Keys of several databases may be equal, so that a key alone is not a place.
  bool Seek(std::string_view, Record*) override { return false; }
  bool After(const Record& record, Record* next) override {
    if (!parts_[record.part].reader->After(record, next)) return false;
    next->part = record.part;
    return true;
  }
  bool has_index() const override {
    return std::ranges::all_of(parts_, [](const Part& part) { return part.reader->has_index(); });
  }
  bool At(uint64_t index, Record* record) override {
    if (index >= order_.size()) return false;
    const auto [part, own_index] = PlaceAt(index);
    if (!parts_[part].reader->At(own_index, record)) return false;
    record->part = part;
    return true;
  }
  uint64_t mapped_bytes() const override {
    uint64_t bytes = 0;
    for (const Part& part : parts_) bytes += part.reader->mapped_bytes();
    return bytes;
  }
  std::string SourceOf(const Record& record) const override { return parts_[record.part].source; }

 private:
  // The part with the record of this place in the epoch, and its number there.
  std::pair<uint32_t, uint32_t> PlaceAt(uint64_t index) const {
    const auto after = std::ranges::upper_bound(parts_, order_[index], {}, &Part::first);
    const auto part = static_cast<uint32_t>(after - parts_.begin()) - 1;
    return {part, order_[index] - parts_[part].first};
  }
  // The record at `position_`: each part's cursor is at the record that it gave last.
  bool Read(Record* record) {
    const auto [number, own_index] = PlaceAt(position_);
    Part& part = parts_[number];
    if (!(own_index == 0 ? part.reader->First(record) : part.reader->Next(record))) {
      throw IoError(StrCat(part.source, ": is damaged: it says that it has ", part.reader->count(),
                           " records, and ", own_index, " can be found; make it again"));
    }
    record->part = number;
    return true;
  }

  std::vector<Part> parts_;
  // The places of an epoch's records if the databases followed each other.
  std::vector<uint32_t> order_;
  uint64_t position_ = 0;
};

}  // namespace

std::unique_ptr<RecordReader> OpenRecordReaders(const DataParameter& reading) {
  if (reading.more().empty()) {
    Require(!reading.has_weight(),
            "data_param has a weight and no other database; add more { "
            "source: \"...\" weight: ... }, or leave out the weight");
    return OpenRecordReader(reading.backend(), reading.source());
  }
  return std::make_unique<MixedReader>(PartsOf(reading));
}

std::string SourcesOf(const DataParameter& reading) {
  std::string names = reading.source();
  for (const DataSource& more : reading.more()) names += " and " + more.source();
  return names;
}

}  // namespace caffe::data
