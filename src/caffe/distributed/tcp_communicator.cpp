#include "caffe/distributed/tcp_communicator.hpp"

#include <functional>

#include "caffe/distributed/message_communicator.hpp"
#include "caffe/distributed/tcp_transport.hpp"

namespace caffe {
namespace {

std::string TextOf(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const std::exception& exception) {
    return exception.what();
  } catch (...) {
    return "an error of unknown type";
  }
}

// Parts of a rank that live as long as its communicator. The heartbeat is destroyed first, because
// its thread aborts the transports.
struct Run {
  std::vector<std::shared_ptr<Transport>> transports;
  std::shared_ptr<Communicator> communicator;
  std::unique_ptr<Heartbeat> heartbeat;
};

constexpr int kTransports = 2;  // between passes, and within them

using ConnectAll =
    std::function<std::vector<std::shared_ptr<Transport>>(const RendezvousOptions&, Heartbeat*)>;

std::shared_ptr<Communicator> MakeCommunicator(RendezvousOptions options,
                                               const ConnectAll& connect) {
  auto run = std::make_shared<Run>();
  run->heartbeat = std::make_unique<Heartbeat>(options);
  Heartbeat& heartbeat = *run->heartbeat;
  try {
    run->transports = connect(options, &heartbeat);
  } catch (...) {
    std::rethrow_exception(heartbeat.ReportLoss(options.rank, TextOf(std::current_exception())));
  }
  heartbeat.OnLoss([transports = run->transports](const std::exception_ptr& loss) {
    for (const auto& transport : transports) transport->Abort(loss);
  });
  std::vector<std::string> machines;
  for (const Member& member : heartbeat.members()) machines.push_back(member.host);
  run->communicator =
      MakeMessageCommunicator(run->transports[0], run->transports[1], machines,
                              [&heartbeat](const std::exception_ptr& error) {
                                return heartbeat.ReportLoss(heartbeat.rank(), TextOf(error));
                              });
  return {run, run->communicator.get()};
}

}  // namespace

std::shared_ptr<Communicator> MakeTcpCommunicator(RendezvousOptions options) {
  Socket port = Socket::Listen({"", 0});
  options.port = port.port();
  return MakeCommunicator(std::move(options),
                          [&port](const RendezvousOptions& joined, Heartbeat* heartbeat) {
                            return ConnectRanks(joined, heartbeat, &port, kTransports);
                          });
}

std::shared_ptr<Communicator> MakeMpiCommunicator(RendezvousOptions options, const MpiModule& mpi) {
  const auto connect = [&mpi](const RendezvousOptions& joined, Heartbeat* heartbeat) {
    return mpi.Connect({.rank = joined.rank,
                        .ranks = joined.ranks,
                        .patience = std::chrono::duration<double>(joined.silence_seconds),
                        .report_loss =
                            [heartbeat](int rank, const std::string& why) {
                              return heartbeat->ReportLoss(rank, why);
                            },
                        .when_rank0_left = [heartbeat] { return heartbeat->WhenRank0Left(); }},
                       kTransports);
  };
  return MakeCommunicator(std::move(options), connect);
}

}  // namespace caffe
