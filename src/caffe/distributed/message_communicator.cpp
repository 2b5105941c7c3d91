#include "caffe/distributed/message_communicator.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <string>
#include <vector>

#include "caffe/distributed/gather_routes.hpp"
#include "caffe/distributed/rank_order_sum.hpp"
#include "caffe/distributed/wire_type.hpp"
#include "caffe/error.hpp"

namespace caffe {
namespace {

// Header of a collective, sent to all other ranks first.
struct Heading {
  uint64_t number = 0;  // of the collective, from 1
  uint64_t count = 0;   // of elements
  uint64_t kind = 0;    // KindOf() the elements, or kText or kBytes
};
// Beside the DTypes, each with a count of its own between two ranks.
constexpr uint64_t kText = 255, kBytes = 254;

uint64_t KindOf(DType dtype, DType wire) {
  return static_cast<uint64_t>(dtype) | static_cast<uint64_t>(wire) << 8;
}

std::span<const char> BytesOf(const Heading& heading) {
  return {reinterpret_cast<const char*>(&heading), sizeof heading};
}
std::span<char> BytesOf(Heading* heading) {
  return {reinterpret_cast<char*>(heading), sizeof *heading};
}

std::string Describe(const Heading& heading) {
  const std::string when = StrCat(" in its collective ", heading.number);
  if (heading.kind == kText) return "a text" + when;
  if (heading.kind == kBytes) return StrCat(heading.count, " bytes", when);
  const auto dtype = static_cast<DType>(heading.kind), wire = static_cast<DType>(heading.kind >> 8);
  const std::string sent = dtype == wire ? "" : StrCat(" sent as ", Name(wire));
  return StrCat("a tensor of ", heading.count, " ", Name(dtype), sent, when);
}

// One sequence of collectives; one thread at a time.
class Channel {
 public:
  Channel(std::shared_ptr<Transport> transport, const std::vector<std::string>& machines)
      : transport_(std::move(transport)),
        direct_(RoutesOf(rank(), std::vector<std::string>(machines.size()))),
        by_machine_(RoutesOf(rank(), machines)) {}

  int rank() const { return transport_->rank(); }
  int ranks() const { return transport_->ranks(); }
  void Abort(const std::exception_ptr& error) { transport_->Abort(error); }
  void ThrowIfAborted() { transport_->ThrowIfAborted(); }

  // Reduce-scatter and all-gather, block by block: while the sums of one block go out and those of
  // the block before are relayed, the values of the next one come in.
  void Sum(const TensorView& tensor, DType wire, double factor) {
    wire = WireType(tensor.dtype, wire);
    Announce(static_cast<uint64_t>(tensor.count()), KindOf(tensor.dtype, wire));
    const auto element = static_cast<int64_t>(SizeOf(wire));
    const GatherRoutes& routes =
        tensor.count() * element <= kLargestDirectReduction ? direct_ : by_machine_;
    const int64_t size = kReductionBlockBytes / element * ranks();
    const int64_t count = (tensor.count() + size - 1) / size;  // of blocks
    Exchanges exchanges;
    std::array<Block, 3> blocks;  // the latest ones
    for (int64_t i = 0; i < count + 2; ++i) {
      Block& relayed = blocks[(i + 1) % 3];
      Block& summed = blocks[(i + 2) % 3];
      Block& next = blocks[i % 3];
      if (i >= 2) AddRelays(routes, relayed, &exchanges);
      if (i >= 1 && i <= count) AddGather(routes, summed, &exchanges);
      if (i < count) {
        next = Block(tensor, i * size, std::min((i + 1) * size, tensor.count()), wire,
                     &rounded_[i % 3]);
        AddScatter(next, &exchanges);
      }
      Run(&exchanges);
      if (i >= 2) relayed.TakeBack();
      if (i < count) AddUp(next, factor);
    }
  }

  std::vector<std::string> Gather(const std::string& text) {
    const std::vector<Heading> headings = Announce(text.size(), kText);
    std::vector<std::string> texts(ranks());
    texts[rank()] = text;
    std::vector<Transport::Outgoing> outgoing;
    std::vector<Transport::Incoming> incoming;
    for (int other = 0; other < ranks(); ++other) {
      if (other == rank()) continue;
      texts[other].resize(headings[other].count);
      outgoing.push_back({other, text});
      incoming.push_back({other, texts[other]});
    }
    transport_->Exchange(outgoing, incoming);
    return texts;
  }

  void Exchange(std::span<const std::span<const char>> sent,
                std::span<const std::span<char>> received) {
    AnnounceEach(sent, received);
    std::vector<Transport::Outgoing> outgoing;
    std::vector<Transport::Incoming> incoming;
    for (int other = 0; other < ranks(); ++other) {
      if (other == rank()) continue;
      outgoing.push_back({other, sent[other]});
      incoming.push_back({other, received[other]});
    }
    transport_->Exchange(outgoing, incoming);
    std::memcpy(received[rank()].data(), sent[rank()].data(), sent[rank()].size());
  }

 private:
  struct Exchanges {
    std::vector<Transport::Outgoing> outgoing;
    std::vector<Transport::Incoming> incoming;
  };

  // Consecutive elements of a tensor. Each rank adds up a share of them. The tensor's memory is
  // sent or, in fewer bits, a copy.
  class Block {
   public:
    Block() = default;
    // `rounded` is for the copy, and stays until TakeBack().
    Block(const TensorView& tensor, int64_t begin, int64_t end, DType wire,
          std::vector<char>* rounded)
        : own_(static_cast<char*>(tensor.data) + static_cast<size_t>(begin) * SizeOf(tensor.dtype)),
          count_(end - begin),
          dtype_(tensor.dtype),
          wire_(wire),
          travelling_(own_) {
      if (wire == tensor.dtype) return;
      rounded->resize(std::max(rounded->size(), static_cast<size_t>(count_) * SizeOf(wire)));
      travelling_ = rounded->data();
      ConvertNumbers(own_, dtype_, travelling_, wire_, count_);
    }

    DType wire() const { return wire_; }
    std::span<char> Share(int rank, int ranks) const {
      const int64_t first = count_ * rank / ranks, last = count_ * (rank + 1) / ranks;
      const size_t element = SizeOf(wire_);
      return {travelling_ + static_cast<size_t>(first) * element,
              static_cast<size_t>(last - first) * element};
    }
    // The copy, into the tensor.
    void TakeBack() const {
      if (travelling_ != own_) ConvertNumbers(travelling_, wire_, own_, dtype_, count_);
    }

   private:
    char* own_ = nullptr;
    int64_t count_ = 0;
    DType dtype_ = DType::kFloat, wire_ = DType::kFloat;
    char* travelling_ = nullptr;
  };

  void Run(Exchanges* exchanges) {
    transport_->Exchange(exchanges->outgoing, exchanges->incoming);
    exchanges->outgoing.clear();
    exchanges->incoming.clear();
  }

  // This rank's share comes from all ranks into parts_, theirs goes to them.
  void AddScatter(const Block& block, Exchanges* exchanges) {
    const size_t bytes = block.Share(rank(), ranks()).size();
    parts_.resize(std::max(parts_.size(), bytes * ranks()));
    for (int other = 0; other < ranks(); ++other) {
      if (other == rank()) continue;
      exchanges->outgoing.push_back({other, block.Share(other, ranks())});
      exchanges->incoming.push_back({other, std::span(parts_).subspan(bytes * other, bytes)});
    }
  }

  // Each rank's sums go to all others: first by their owners, then by relays.
  void AddGather(const GatherRoutes& routes, const Block& block, Exchanges* exchanges) {
    AddHops(routes.sends, routes.receives, block, exchanges);
  }
  void AddRelays(const GatherRoutes& routes, const Block& block, Exchanges* exchanges) {
    AddHops(routes.relays, routes.relayed, block, exchanges);
  }
  void AddHops(const std::vector<GatherRoutes::Hop>& out, const std::vector<GatherRoutes::Hop>& in,
               const Block& block, Exchanges* exchanges) {
    for (const auto& [owner, peer] : out) {
      exchanges->outgoing.push_back({peer, block.Share(owner, ranks())});
    }
    for (const auto& [owner, peer] : in) {
      exchanges->incoming.push_back({peer, block.Share(owner, ranks())});
    }
  }

  // This rank's share of the block.
  void AddUp(const Block& block, double factor) {
    const std::span<char> own = block.Share(rank(), ranks());
    std::vector<void*> inputs;
    for (int other = 0; other < ranks(); ++other) {
      inputs.push_back(other == rank() ? own.data() : parts_.data() + own.size() * other);
    }
    void* const output = own.data();
    const auto count = static_cast<int64_t>(own.size() / SizeOf(block.wire()));
    SumInRankOrder(block.wire(), block.wire(), inputs, std::span(&output, 1), 0, count, factor);
  }

  // Exchanges headers, and throws if they differ. Returns them by rank.
  std::vector<Heading> Announce(uint64_t count, uint64_t kind) {
    const Heading own{++number_, count, kind};
    std::vector<Heading> headings = SendHeadings(std::vector<Heading>(ranks(), own));
    for (int other = 0; other < ranks(); ++other) {
      const Heading& heading = headings[other];
      const bool is_alike = heading.number == own.number && heading.kind == own.kind &&
                            (kind == kText || heading.count == own.count);
      if (!is_alike) ThrowUnlike(own, heading, other);
    }
    return headings;
  }

  // The same if each rank receives other bytes.
  void AnnounceEach(std::span<const std::span<const char>> sent,
                    std::span<const std::span<char>> received) {
    ++number_;
    std::vector<Heading> own;
    for (const std::span<const char> bytes : sent) own.push_back({number_, bytes.size(), kBytes});
    const std::vector<Heading> headings = SendHeadings(own);
    for (int other = 0; other < ranks(); ++other) {
      const Heading expected{number_, received[other].size(), kBytes};
      const Heading& heading = headings[other];
      const bool is_alike = heading.number == expected.number && heading.kind == expected.kind &&
                            heading.count == expected.count;
      if (!is_alike) ThrowUnlike(expected, heading, other);
    }
  }

  // To each rank one; returns what they have sent.
  std::vector<Heading> SendHeadings(const std::vector<Heading>& own) {
    std::vector<Heading> headings = own;
    std::vector<Transport::Outgoing> outgoing;
    std::vector<Transport::Incoming> incoming;
    for (int other = 0; other < ranks(); ++other) {
      if (other == rank()) continue;
      outgoing.push_back({other, BytesOf(own[other])});
      incoming.push_back({other, BytesOf(&headings[other])});
    }
    transport_->Exchange(outgoing, incoming);
    return headings;
  }

  [[noreturn]] void ThrowUnlike(const Heading& own, const Heading& heading, int other) const {
    throw InvalidArgument(StrCat("rank ", rank(), ": ", Describe(own), " meets ", Describe(heading),
                                 " of rank ", other, "; train the same net on all"));
  }

  const std::shared_ptr<Transport> transport_;
  const GatherRoutes direct_, by_machine_;
  uint64_t number_ = 0;                         // of collectives so far
  std::vector<char> parts_;                     // of all ranks, of a share of a block
  std::array<std::vector<char>, 3> rounded_{};  // of the latest blocks
};

class MessageCommunicator final : public Communicator {
 public:
  MessageCommunicator(std::shared_ptr<Transport> transport, std::shared_ptr<Transport> in_pass,
                      const std::vector<std::string>& machines, TellError tell)
      : between_(std::move(transport), machines),
        in_pass_(std::move(in_pass), machines),
        tell_(std::move(tell)) {}

  int rank() const override { return between_.rank(); }
  int ranks() const override { return between_.ranks(); }
  int ranks_in_process() const override { return 1; }

  void AllReduceMean(const TensorView& tensor, DType wire, Event& filled) override {
    filled.Synchronize();
    between_.Sum(tensor, wire, 1.0 / ranks());
  }
  void AllReduceSum(std::span<double> numbers) override { Sum(&between_, numbers); }
  void AllReduceSumInPass(std::span<double> numbers) override { Sum(&in_pass_, numbers); }
  void ExchangeInPass(std::span<const std::span<const char>> sent,
                      std::span<const std::span<char>> received) override {
    in_pass_.Exchange(sent, received);
  }
  std::vector<std::string> AllGather(const std::string& text) override {
    return between_.Gather(text);
  }
  void Abort(std::exception_ptr error) override {
    try {
      if (tell_) error = tell_(error);
    } catch (const std::exception&) {  // no memory, say: the others notice that this rank ends
    }
    between_.Abort(error);
    in_pass_.Abort(error);
  }
  void ThrowIfAborted() override { between_.ThrowIfAborted(); }

 private:
  static void Sum(Channel* channel, std::span<double> numbers) {
    const Shape shape{static_cast<int64_t>(numbers.size())};
    channel->Sum({{shape, DType::kDouble}, numbers.data()}, DType::kDouble, 1);
  }

  Channel between_, in_pass_;  // between passes, and within them
  const TellError tell_;
};

}  // namespace

std::shared_ptr<Communicator> MakeMessageCommunicator(std::shared_ptr<Transport> transport,
                                                      std::shared_ptr<Transport> in_pass,
                                                      const std::vector<std::string>& machines,
                                                      TellError tell) {
  return std::make_shared<MessageCommunicator>(std::move(transport), std::move(in_pass), machines,
                                               std::move(tell));
}

}  // namespace caffe
