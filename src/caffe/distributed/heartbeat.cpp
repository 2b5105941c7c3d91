#include "caffe/distributed/heartbeat.hpp"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>

#include "caffe/core/printable.hpp"
#include "caffe/core/start_thread.hpp"

namespace caffe {
namespace {

constexpr std::chrono::seconds kHeartbeat{1};
// How long a rank waits for rank 0 to decide which rank was lost first, and at the end for the
// others to receive its last messages.
constexpr std::chrono::seconds kVerdict{3};
// How long a rank waits for rank 0's explanation after another connection to rank 0 is lost: it may
// have ended because of another rank.
constexpr std::chrono::seconds kExplanation{2};
// Maximum length of the text about a loss, which is sent to all ranks.
constexpr size_t kLongestReason = 16000;
// If this thread has not run for so long, the process was stopped, and heartbeats of the others
// wait in the sockets.
constexpr std::chrono::seconds kPause{5};

// The port of the rendezvous must not stay open: nobody would answer there.
RendezvousOptions WithoutPort(RendezvousOptions options) {
  options.root_port = nullptr;
  return options;
}

}  // namespace

Heartbeat::Heartbeat(RendezvousOptions options, Clock& clock)
    : Heartbeat(options, Rendezvous(options), clock) {}

Heartbeat::Heartbeat(RendezvousOptions options, Joined joined, Clock& clock)
    : options_(WithoutPort(std::move(options))),
      clock_(clock),
      members_(std::move(joined.members)),
      process_(::getpid()) {
  for (auto& [rank, stream] : joined.streams)
    peers_.emplace(rank, Peer{std::move(stream), clock_.Now()});
  wake_ = ::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  if (wake_ < 0) throw DeviceError("the system gives no eventfd; end other programs");
  try {
    thread_ = StartThread("the ranks' heartbeats", [this] { Run(); });
  } catch (...) {
    ::close(wake_);
    throw;
  }
}

Heartbeat::~Heartbeat() {
  if (::getpid() != process_) {  // a child made by fork(), which has no such thread
    thread_.detach();
    return;
  }
  {
    const std::lock_guard lock(mutex_);
    stops_ = true;
  }
  Wake();
  thread_.join();
  ::close(wake_);
}

void Heartbeat::OnLoss(std::function<void(const std::exception_ptr&)> call) {
  std::unique_lock lock(mutex_);
  on_loss_ = std::move(call);
  if (!loss_) return;
  const std::exception_ptr loss = loss_;
  lock.unlock();
  on_loss_(loss);
}

std::exception_ptr Heartbeat::ReportLoss(int rank, const std::string& why) {
  std::unique_lock lock(mutex_);
  if (loss_) return loss_;
  reports_.emplace_back(rank, why.substr(0, kLongestReason));
  Wake();
  clock_.WaitUntil(changed_, lock, clock_.Now() + kVerdict, [this] { return loss_ != nullptr; });
  if (loss_) return loss_;
  return std::make_exception_ptr(DeviceError(StrCat(Describe(rank), ": ", why)));
}

void Heartbeat::ThrowIfLost() {
  const std::lock_guard lock(mutex_);
  if (loss_) std::rethrow_exception(loss_);
}

std::optional<Clock::TimePoint> Heartbeat::WhenRank0Left() {
  const std::lock_guard lock(mutex_);
  return rank0_left_at_;
}

void Heartbeat::Wake() const {
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = ::write(wake_, &one, sizeof one);
}

void Heartbeat::Run() {
  try {
    while (RunOnce()) continue;
  } catch (const std::exception& error) {  // for example, no memory
    SetLoss({options_.rank,
             StrCat(Describe(options_.rank), ": its heartbeats have ended: ", error.what())});
  }
}

// Returns false at the end.
bool Heartbeat::RunOnce() {
  Poll();
  DiscountOwnPause();
  for (auto& [rank, peer] : peers_) Read(rank, &peer);
  std::vector<std::pair<int, std::string>> reports;
  bool stops, is_lost;
  {
    const std::lock_guard lock(mutex_);
    reports.swap(reports_);
    stops = stops_;
    is_lost = loss_ != nullptr;
  }
  for (const auto& [rank, why] : reports) {
    if (rank == 0 && options_.rank != 0) {
      Suspect(why);
    } else {
      ReportToRoot({rank, why});
    }
  }
  CheckSuspicion();
  if (stops) return Leave(is_lost);
  if (!is_lost) {
    SendHeartbeats();
    CheckSilence();
  }
  return true;
}

// Waits until there is something to do.
void Heartbeat::Poll() const {
  std::vector<pollfd> waiting{{wake_, POLLIN, 0}};
  for (auto& [rank, peer] : peers_) {
    if (peer.is_gone) continue;
    const int events = peer.stream.has_unsent() ? POLLIN | POLLOUT : POLLIN;
    waiting.push_back({peer.stream.socket().descriptor(), static_cast<short>(events), 0});
  }
  ::poll(waiting.data(), waiting.size(), 100);
  uint64_t ignored;
  [[maybe_unused]] const ssize_t size = ::read(wake_, &ignored, sizeof ignored);
}

// Returns true while another rank may not have received this one's last messages. A rank that has
// received them ends its connection; if it were closed earlier, with unread bytes, it would be
// reset and the messages lost. A short failure of the network must not end a run that is finished
// here: others may still wait for this rank's part of the last sum.
bool Heartbeat::Leave(bool is_lost) {
  if (end_ == Clock::TimePoint::max()) {
    const std::chrono::duration<double> silence(is_lost ? 0 : options_.silence_seconds);
    end_ = clock_.Now() + std::max<Clock::Duration>(
                              kVerdict, std::chrono::duration_cast<Clock::Duration>(silence));
    distributed::Notice notice;
    notice.set_leaves(true);
    Send(notice);
  }
  if (clock_.Now() >= end_) return false;
  if (is_lost && options_.rank != 0) return false;  // rank 0 has told all
  return std::any_of(peers_.begin(), peers_.end(),
                     [](const auto& one) { return !one.second.is_gone && !one.second.is_silent; });
}

void Heartbeat::DiscountOwnPause() {
  const Clock::TimePoint now = clock_.Now();
  if (now - looked_ > kPause) {
    for (auto& [rank, peer] : peers_) peer.heard = now;
    slept_ = now - looked_;
    woke_ = now;
  }
  looked_ = now;
}

void Heartbeat::SendHeartbeats() {
  if (clock_.Now() - told_ < kHeartbeat) return;
  told_ = clock_.Now();
  distributed::Notice notice;
  notice.set_is_alive(true);
  if (options_.doing) notice.set_doing(options_.doing());
  Send(notice);
}

void Heartbeat::CheckSilence() {
  const std::chrono::duration<double> limit(options_.silence_seconds);
  for (auto& [rank, peer] : peers_) {
    if (peer.is_gone || clock_.Now() - peer.heard < limit) continue;
    peer.is_silent = true;
    ReportToRoot(
        {rank, StrCat("has sent no heartbeat for ", options_.silence_seconds,
                      " s; its machine or its network is down, or the process is stopped")});
  }
}

void Heartbeat::Read(int rank, Peer* peer) {
  try {
    // First read what the other end has sent, which may say why it has ended.
    distributed::Notice notice;
    while (!peer->is_gone && peer->stream.Receive(&notice)) {
      peer->heard = clock_.Now();
      Take(rank, peer, notice);
    }
    if (!peer->is_gone) peer->stream.Flush();
  } catch (const ConnectionLost& error) {
    peer->is_gone = true;
    const bool is_leaving = end_ != Clock::TimePoint::max();
    if (!is_leaving) ReportToRoot({rank, StrCat("has ended without a word: ", error.what())});
  } catch (const IoError& error) {
    peer->is_gone = true;
    ReportToRoot({rank, StrCat("speaks another language: ", error.what())});
  }
}

void Heartbeat::Take(int rank, Peer* peer, const distributed::Notice& notice) {
  if (!notice.doing().empty()) peer->doing = Printable(notice.doing());
  if (notice.leaves()) {
    peer->is_gone = true;
    peer->stream.socket().EndSending();
    const std::lock_guard lock(mutex_);
    if (rank == 0) rank0_left_at_ = clock_.Now();
  }
  if (notice.loss().empty()) return;
  const int lost = notice.lost_rank();
  if (options_.rank != 0) {
    SetLoss({lost, PrintableLines(notice.loss())});  // rank 0 decides
  } else if (lost == rank) {
    ReportToRoot({rank, PrintableLines(notice.loss())});
  } else if (0 <= lost && lost < options_.ranks) {
    ReportToRoot({lost, StrCat(PrintableLines(notice.loss()), " (says ", Describe(rank), ")")});
  }
}

void Heartbeat::Send(const distributed::Notice& notice) {
  for (auto& [rank, peer] : peers_) {
    if (peer.is_gone) continue;
    try {
      peer.stream.Send(notice);
    } catch (const ConnectionLost&) {
      // Read() notices this too, after reading what the other end has sent before.
    }
  }
}

void Heartbeat::Suspect(const std::string& why) {
  if (!suspicion_) suspicion_.emplace(why, clock_.Now());
}

void Heartbeat::CheckSuspicion() {
  if (!suspicion_) return;
  const auto& [why, since] = *suspicion_;
  if (peers_.at(0).is_gone || clock_.Now() - since >= kExplanation) ReportToRoot({0, why});
}

// If this rank was stopped for longer than the others wait, they have ended and named it, so it
// names itself instead of them.
Heartbeat::Loss Heartbeat::SeenByOthers(const Loss& loss) const {
  const std::chrono::duration<double> slept = slept_, limit(options_.silence_seconds);
  if (slept < limit || clock_.Now() - woke_ > kVerdict) return loss;
  return {options_.rank,
          StrCat("was stopped for ", std::llround(slept.count()), " s, and the others, which wait ",
                 options_.silence_seconds, " s for a heartbeat, have ended")};
}

// Sends a loss to rank 0, which decides which rank was lost first. On rank 0, or if rank 0 itself
// is lost, decides here.
void Heartbeat::ReportToRoot(const Loss& noticed) {
  const Loss loss = SeenByOthers(noticed);
  distributed::Notice notice;
  notice.set_lost_rank(loss.rank);
  const bool is_judge = options_.rank == 0;
  if (!is_judge && !peers_.at(0).is_gone && loss.rank != 0) {
    notice.set_loss(loss.why);
    Send(notice);
    return;
  }
  {
    const std::lock_guard lock(mutex_);
    if (loss_) return;
  }
  std::string text = StrCat(Describe(loss.rank), ": ", loss.why);
  const auto peer = peers_.find(loss.rank);
  if (peer != peers_.end() && !peer->second.doing.empty()) {
    text += StrCat("; last heard of: ", peer->second.doing);
  }
  if (is_judge) {
    notice.set_loss(text);
    Send(notice);
  }
  SetLoss({loss.rank, text});
}

// Sets the error that all ranks throw.
void Heartbeat::SetLoss(const Loss& loss) {
  std::unique_lock lock(mutex_);
  if (loss_) return;
  loss_ = std::make_exception_ptr(DeviceError(loss.why));
  changed_.notify_all();
  const auto call = on_loss_;
  const std::exception_ptr error = loss_;
  lock.unlock();
  if (call) call(error);
}

}  // namespace caffe
