// Ranks that are processes, on one machine or several. Heartbeats are sent over TCP; collectives
// over TCP or MPI.
#pragma once

#include <memory>

#include "caffe/distributed/communicator.hpp"
#include "caffe/distributed/mpi_module.hpp"
#include "caffe/distributed/rendezvous/rendezvous.hpp"

namespace caffe {

// Blocks until all ranks have joined; `options.port` is set here. When a rank fails, ends or sends
// no heartbeat, the collectives of all ranks throw a DeviceError that names it. Throws what
// Rendezvous() and ConnectRanks() throw.
std::shared_ptr<Communicator> MakeTcpCommunicator(RendezvousOptions options);

// The same with collectives over MPI, which has started the ranks and runs. Also throws what
// MpiModule::Connect() throws.
std::shared_ptr<Communicator> MakeMpiCommunicator(RendezvousOptions options, const MpiModule& mpi);

}  // namespace caffe
