#include "caffe/distributed/tcp_communicator.hpp"

#include <functional>

#include "caffe/distributed/message_communicator.hpp"
#include "caffe/distributed/mpi_module.hpp"
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

// All of one rank, for as long as its communicator is used. The membership ends first: its thread
// aborts the transports.
struct Run {
  std::vector<std::shared_ptr<Transport>> transports;
  std::shared_ptr<Communicator> communicator;
  std::unique_ptr<Membership> membership;
};

constexpr int kTransports = 2;  // between passes, and within them

using ConnectAll =
    std::function<std::vector<std::shared_ptr<Transport>>(const MembershipOptions&, Membership*)>;

std::shared_ptr<Communicator> MakeCommunicator(MembershipOptions options,
                                               const ConnectAll& connect) {
  auto run = std::make_shared<Run>();
  run->membership = std::make_unique<Membership>(options);
  Membership& membership = *run->membership;
  try {
    run->transports = connect(options, &membership);
  } catch (...) {
    std::rethrow_exception(membership.ReportLoss(options.rank, TextOf(std::current_exception())));
  }
  membership.OnLoss([transports = run->transports](const std::exception_ptr& loss) {
    for (const auto& transport : transports) transport->Abort(loss);
  });
  std::vector<std::string> machines;
  for (const Member& member : membership.members()) machines.push_back(member.host);
  run->communicator =
      MakeMessageCommunicator(run->transports[0], run->transports[1], machines,
                              [&membership](const std::exception_ptr& error) {
                                return membership.ReportLoss(membership.rank(), TextOf(error));
                              });
  return {run, run->communicator.get()};
}

}  // namespace

std::shared_ptr<Communicator> MakeTcpCommunicator(MembershipOptions options) {
  Socket port = Socket::Listen({"", 0});
  options.port = port.port();
  return MakeCommunicator(std::move(options),
                          [&port](const MembershipOptions& joined, Membership* membership) {
                            return ConnectRanks(joined, membership, &port, kTransports);
                          });
}

std::shared_ptr<Communicator> MakeMpiCommunicator(MembershipOptions options) {
  const MpiModule& mpi = MpiModule::Get();
  const auto connect = [&mpi](const MembershipOptions& joined, Membership* membership) {
    return mpi.Connect({.rank = joined.rank,
                        .ranks = joined.ranks,
                        .patience = std::chrono::duration<double>(joined.silence_seconds),
                        .report_loss =
                            [membership](int rank, const std::string& why) {
                              return membership->ReportLoss(rank, why);
                            },
                        .when_rank0_left = [membership] { return membership->WhenRank0Left(); }},
                       kTransports);
  };
  return MakeCommunicator(std::move(options), connect);
}

}  // namespace caffe
