// Ranks that are processes, on one machine or several, connected by TCP, or by MPI for their data.
#pragma once

#include <memory>

#include "caffe/distributed/communicator.hpp"
#include "caffe/distributed/gathering.hpp"

namespace caffe {

// Blocks until all ranks have joined; `options.port` is set here. When a rank fails, ends or sends
// no heartbeat, the collectives of all ranks throw a DeviceError that names it. Throws what
// Gather() and ConnectRanks() throw.
std::shared_ptr<Communicator> MakeTcpCommunicator(MembershipOptions options);

// The same where collectives travel by MPI, which has started the ranks; TCP looks after them. Also
// throws what MpiModule does.
std::shared_ptr<Communicator> MakeMpiCommunicator(MembershipOptions options);

}  // namespace caffe
