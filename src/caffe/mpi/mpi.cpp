// Modules libcaffe_openmpi and libcaffe_mpich: the start of ranks and messages between them by MPI.
#include <dlfcn.h>
#include <mpi.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>

#include "caffe/distributed/mpi_module.hpp"
#include "caffe/error.hpp"
#include "caffe/export.hpp"

namespace caffe {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kDataTag = 1, kFarewellTag = 2;
// Maximum size of one MPI message, whose count is an int.
constexpr size_t kMostBytes = size_t{1} << 30;

// Access to MPI, one call at a time: MPI must support only MPI_THREAD_SERIALIZED.
class Mpi {
 public:
  static Mpi& Get() {
    static auto* const mpi = new Mpi;  // transports may outlive main()
    return *mpi;
  }

  // Calls fn() while no other thread calls MPI. Throws if MPI has been abandoned.
  template <typename Fn>
  void Call(const Fn& fn) {
    RequireOwnProcess();
    const std::lock_guard lock(mutex_);
    int is_over = 0;
    MPI_Finalized(&is_over);
    if (is_abandoned_ || is_over != 0) {
      throw DeviceError(
          "MPI has ended in this process, after an error or by a call of MPI_Finalize(); start all "
          "ranks again as new processes");
    }
    fn();
  }

  // Abandons MPI: requests in flight refer to memory that will be freed, so MPI must not continue
  // with them, not even in MPI_Finalize().
  void Abandon() {
    const std::lock_guard lock(mutex_);
    is_abandoned_ = true;
  }

  static void Check(int code, const char* what) {
    if (code == MPI_SUCCESS) return;
    char text[MPI_MAX_ERROR_STRING] = {};
    int length = 0;
    MPI_Error_string(code, text, &length);
    throw DeviceError(StrCat("MPI: ", what, ": ", text));
  }

 private:
  Mpi() {
    int is_there = 0, level = MPI_THREAD_SINGLE;
    MPI_Initialized(&is_there);
    if (is_there != 0) {
      MPI_Query_thread(&level);
    } else {
      Check(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &level), "MPI_Init_thread");
    }
    Require(level >= MPI_THREAD_SERIALIZED, is_there != 0 ? "this program has" : "this MPI can be",
            " started for a single thread, but gradients are sent by another one; ",
            is_there != 0 ? "start MPI with MPI_THREAD_MULTIPLE" : "give --store, for TCP");
    if (is_there == 0) std::atexit([] { Get().Finalize(); });
  }

  // The connections of MPI belong to the process that has opened them.
  void RequireOwnProcess() const {
    if (::getpid() != process_) throw DeviceError("a child made by fork() cannot use MPI");
  }

  void Finalize() {
    if (::getpid() != process_) return;
    const std::lock_guard lock(mutex_);
    int is_over = 0;
    MPI_Finalized(&is_over);
    if (!is_abandoned_ && is_over == 0) MPI_Finalize();
  }

  const pid_t process_ = ::getpid();
  std::mutex mutex_;
  bool is_abandoned_ = false;
};

// Environment variables of launchers that MPI supports. Slurm's PMI-1 sets none, and its PMI-2 is
// for MPICH and its derivatives: an MPI that was built with them is recognised only by the values
// below.
#ifdef OPEN_MPI
// OMPI_MCA_pmix is the user's choice of a PMI, such as s1 and s2 for Slurm's.
constexpr const char* kLaunchers[] = {"PMIX_NAMESPACE", "OMPI_COMM_WORLD_SIZE", "OMPI_MCA_pmix"};
constexpr char kPmi[] = "pmix";
constexpr char kSlurmsPmi[] =
    ", or say OMPI_MCA_pmix=s1 (for --mpi=none) or s2 (for --mpi=pmi2) if this MPI was built with "
    "Slurm's PMI";
bool IsSlurmsPmiLinked() {
  return false;  // a plug-in that MPI_Init() loads
}
#else
constexpr const char* kLaunchers[] = {"PMIX_NAMESPACE", "PMI_RANK"};
constexpr char kPmi[] = "pmi2";
constexpr char kSlurmsPmi[] = "";
bool IsSlurmsPmiLinked() {
  const auto is_loaded = [](const char* library) {
    return ::dlopen(library, RTLD_LAZY | RTLD_NOLOAD) != nullptr;
  };
  return is_loaded("libpmi.so.0") || is_loaded("libpmi2.so.0");
}
#endif

// "Open MPI v4.1.4", "MPICH Version: 4.0.2".
std::string LibraryName() {
  char version[MPI_MAX_LIBRARY_VERSION_STRING] = {};
  int length = 0;
  MPI_Get_library_version(version, &length);
  std::string name(version,
                   std::min<size_t>(length, std::string_view(version).find_first_of(",\n")));
  std::replace(name.begin(), name.end(), '\t', ' ');
  return name;
}

// State shared by the transports of one run: aborting one aborts all.
class Fate {
 public:
  void Abort(std::exception_ptr error) {
    const std::lock_guard lock(mutex_);
    if (!error_) error_ = std::move(error);
  }
  void ThrowIfAborted() {
    const std::lock_guard lock(mutex_);
    if (error_) std::rethrow_exception(error_);
  }

 private:
  std::mutex mutex_;
  std::exception_ptr error_;
};

// Between two polls. The first polls follow each other at once; then a pause is a sixteenth of the
// time waited so far, so that it delays a message by that share at most, and a long wait costs
// little of the processor. Does not yield: on a busy machine that costs a turn of all other
// processes, while a process that slept runs next.
class Pause {
 public:
  void Wait() {
    if (++polls_ <= kPollsInARow) return;
    SetTimerSlack();
    const auto pause =
        std::clamp<Clock::duration>((Clock::now() - begin_) / 16, kShortest, kLongest);
    std::this_thread::sleep_for(pause);
  }

 private:
  // By default Linux adds up to 50 us to each pause of a thread.
  static void SetTimerSlack() {
    [[maybe_unused]] thread_local const int set = ::prctl(PR_SET_TIMERSLACK, 1000UL);
  }

  static constexpr int kPollsInARow = 20;
  static constexpr std::chrono::microseconds kShortest{2}, kLongest{100};

  Clock::time_point begin_ = Clock::now();
  int polls_ = 0;
};

class MpiTransport final : public Transport {
 public:
  MpiTransport(const MpiRun& run, std::shared_ptr<Fate> fate)
      : run_(run), fate_(std::move(fate)), farewells_(run.ranks), left_at_(run.ranks) {
    Mpi::Get().Call([&] {
      Mpi::Check(MPI_Comm_dup(MPI_COMM_WORLD, &communicator_), "MPI_Comm_dup");
      MPI_Comm_set_errhandler(communicator_, MPI_ERRORS_RETURN);
      for (int rank = 0; rank < run_.ranks; ++rank) {
        farewells_[rank] = MPI_REQUEST_NULL;
        if (rank == run_.rank) continue;
        MPI_Irecv(nullptr, 0, MPI_BYTE, rank, kFarewellTag, communicator_, &farewells_[rank]);
      }
    });
  }

  // Notifies ranks that still wait for this one, because MPI does not report closed connections.
  ~MpiTransport() override {
    try {
      ThrowIfAborted();
      SayFarewell();
    } catch (...) {  // nobody listens, or all learn of the error in other ways
    }
  }

  int rank() const override { return run_.rank; }
  int ranks() const override { return run_.ranks; }

  void Exchange(std::span<const Outgoing> outgoing, std::span<const Incoming> incoming) override {
    ThrowIfAborted();
    Exchanged exchanged;
    try {
      Mpi::Get().Call([&] { Post(outgoing, incoming, &exchanged); });
      Complete(&exchanged);
    } catch (...) {
      Abort(std::current_exception());  // has no effect after an earlier abort
      ThrowIfAborted();
    }
  }

  void Abort(std::exception_ptr error) override {
    fate_->Abort(std::move(error));
    Mpi::Get().Abandon();
  }
  void ThrowIfAborted() override { fate_->ThrowIfAborted(); }

 private:
  struct Exchanged {
    std::vector<MPI_Request> requests;  // MPI_REQUEST_NULL: complete
    std::vector<int> peers;             // of each request
    Clock::time_point moved = Clock::now();
  };

  // Calls fn(part) for parts that fit into one MPI message; once for an empty span.
  template <typename Byte, typename Fn>
  static void ForParts(std::span<Byte> bytes, const Fn& fn) {
    do {
      const std::span<Byte> part = bytes.first(std::min(bytes.size(), kMostBytes));
      fn(part);
      bytes = bytes.subspan(part.size());
    } while (!bytes.empty());
  }

  void Post(std::span<const Outgoing> outgoing, std::span<const Incoming> incoming,
            Exchanged* exchanged) {
    const auto add = [&](int peer, const auto& post) {
      MPI_Request request = MPI_REQUEST_NULL;
      Mpi::Check(post(&request), "a message to or from another rank");
      exchanged->requests.push_back(request);
      exchanged->peers.push_back(peer);
    };
    for (const Incoming& one : incoming) {
      ForParts(one.bytes, [&](std::span<char> part) {
        add(one.from, [&](MPI_Request* request) {
          return MPI_Irecv(part.data(), static_cast<int>(part.size()), MPI_BYTE, one.from, kDataTag,
                           communicator_, request);
        });
      });
    }
    for (const Outgoing& one : outgoing) {
      ForParts(one.bytes, [&](std::span<const char> part) {
        add(one.to, [&](MPI_Request* request) {
          return MPI_Isend(part.data(), static_cast<int>(part.size()), MPI_BYTE, one.to, kDataTag,
                           communicator_, request);
        });
      });
    }
  }

  // MPI makes progress only within its calls, so it is polled.
  void Complete(Exchanged* exchanged) {
    Pause pause;
    Clock::time_point checked = exchanged->moved;
    while (true) {
      const int completed = Test(&exchanged->requests);
      if (completed == MPI_UNDEFINED) return;
      if (completed > 0) {
        exchanged->moved = Clock::now();
        pause = Pause();
        continue;
      }
      ThrowIfAborted();
      pause.Wait();
      if (Clock::now() - checked < kBetweenChecks) continue;
      checked = Clock::now();
      CheckPeers(*exchanged);
    }
  }

  // Returns the number of requests that have just completed; MPI_UNDEFINED if all were complete.
  static int Test(std::vector<MPI_Request>* requests) {
    int completed = MPI_UNDEFINED;
    std::vector<int> indices(requests->size());
    Mpi::Get().Call([&] {
      const auto count = static_cast<int>(requests->size());
      Mpi::Check(
          MPI_Testsome(count, requests->data(), &completed, indices.data(), MPI_STATUSES_IGNORE),
          "a message to or from another rank");
    });
    return completed;
  }

  // Checks the peers whose messages are missing.
  void CheckPeers(const Exchanged& exchanged) {
    HearFarewells();
    const std::optional<Clock::time_point> rank0_left = run_.when_rank0_left();
    for (size_t i = 0; i < exchanged.peers.size(); ++i) {
      if (exchanged.requests[i] == MPI_REQUEST_NULL) continue;
      const int peer = exchanged.peers[i];
      const auto lasts = [&](const std::optional<Clock::time_point>& since,
                             std::chrono::duration<double> patience) {
        return since && Clock::now() - std::max(*since, exchanged.moved) > patience;
      };
      if (lasts(left_at_[peer], kLongestUnderWay)) ThrowLoss(peer, "has left the run");
      if (!lasts(rank0_left, run_.patience)) continue;
      ThrowLoss(peer, StrCat("rank ", run_.rank, " has waited for it for ", run_.patience.count(),
                             " s, since rank 0 has ended; its machine or its network is down, or "
                             "the process is stopped"));
    }
  }

  void HearFarewells() {
    for (int peer = 0; peer < run_.ranks; ++peer) {
      if (peer == run_.rank || left_at_[peer]) continue;
      int has_come = 0;
      Mpi::Get().Call([&] {
        Mpi::Check(MPI_Test(&farewells_[peer], &has_come, MPI_STATUS_IGNORE), "a farewell");
      });
      if (has_come != 0) left_at_[peer] = Clock::now();
    }
  }

  // Others may have left MPI, so do not wait for delivery: the message is empty and sent eagerly.
  void SayFarewell() {
    Mpi::Get().Call([&] {
      for (int peer = 0; peer < run_.ranks; ++peer) {
        if (peer == run_.rank) continue;
        MPI_Request request = MPI_REQUEST_NULL;
        MPI_Isend(nullptr, 0, MPI_BYTE, peer, kFarewellTag, communicator_, &request);
        if (request != MPI_REQUEST_NULL) MPI_Request_free(&request);
      }
    });
  }

  void ThrowLoss(int peer, const std::string& why) {
    Abort(run_.report_loss(peer, why));
    ThrowIfAborted();  // throws the first error
  }

  static constexpr std::chrono::milliseconds kBetweenChecks{20};
  // After this time, messages of a rank that has left have arrived.
  static constexpr std::chrono::seconds kLongestUnderWay{2};

  const MpiRun run_;
  const std::shared_ptr<Fate> fate_;
  MPI_Comm communicator_ = MPI_COMM_NULL;
  std::vector<MPI_Request> farewells_;  // by rank
  std::vector<std::optional<Clock::time_point>> left_at_;
};

class Module final : public MpiModule {
 public:
  std::string WhyNotLaunched() const override {
    int is_there = 0;
    MPI_Initialized(&is_there);
    const bool is_known =
        std::any_of(std::begin(kLaunchers), std::end(kLaunchers),
                    [](const char* variable) { return std::getenv(variable) != nullptr; });
    if (is_there != 0 || is_known) return "";
    if (std::getenv("SLURM_STEP_NUM_TASKS") == nullptr)
      return StrCat("no mpirun of this MPI (", LibraryName(), ") has started this process");
    if (IsSlurmsPmiLinked()) return "";
    return StrCat("srun has started this process, but not in a way that this MPI (", LibraryName(),
                  ") knows; start the ranks by mpirun or by srun --mpi=", kPmi, kSlurmsPmi);
  }

  MpiWorld Start() const override {
    MpiWorld world;
    Mpi::Get().Call([&] {
      MPI_Comm_rank(MPI_COMM_WORLD, &world.rank);
      MPI_Comm_size(MPI_COMM_WORLD, &world.ranks);
    });
    world.library = LibraryName();
    return world;
  }

  std::string Broadcast(const std::string& text, double seconds) const override {
    const auto deadline = Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                             std::chrono::duration<double>(seconds));
    std::string bytes = text;
    auto size = static_cast<uint64_t>(text.size());
    BroadcastBytes(&size, sizeof size, deadline);
    bytes.resize(size);
    BroadcastBytes(bytes.data(), size, deadline);
    return bytes;
  }

  void Abandon() const override { Mpi::Get().Abandon(); }

  std::vector<std::shared_ptr<Transport>> Connect(const MpiRun& run, int count) const override {
    std::vector<std::shared_ptr<Transport>> transports;
    const auto fate = std::make_shared<Fate>();
    for (int i = 0; i < count; ++i) transports.push_back(std::make_shared<MpiTransport>(run, fate));
    return transports;
  }

 private:
  static void BroadcastBytes(void* bytes, size_t size, Clock::time_point deadline) {
    MPI_Request request = MPI_REQUEST_NULL;
    Mpi::Get().Call([&] {
      Mpi::Check(MPI_Ibcast(bytes, static_cast<int>(size), MPI_BYTE, 0, MPI_COMM_WORLD, &request),
                 "the start of the ranks");
    });
    for (Pause pause;; pause.Wait()) {
      int is_done = 0;
      Mpi::Get().Call([&] {
        Mpi::Check(MPI_Test(&request, &is_done, MPI_STATUS_IGNORE), "the start of the ranks");
      });
      if (is_done != 0) return;
      if (Clock::now() < deadline) continue;
      Mpi::Get().Abandon();
      throw DeviceError(
          "some ranks that MPI has started do not join in time; their own messages "
          "say why, or their processes are stopped");
    }
  }
};

}  // namespace
}  // namespace caffe

extern "C" CAFFE_EXPORT const caffe::MpiModule* caffe_mpi_module() {
  static const caffe::Module module;
  return &module;
}
