// Tests where signal handlers run while a net computes: never in a thread of the team, and in the
// caller on its stack, not where a kernel has left the stack pointer. The result does not depend on
// how late a signal arrives.
#include <gtest/gtest.h>
#include <omp.h>
#include <pthread.h>
#include <signal.h>
#include <sys/time.h>

#include <atomic>
#include <cstdint>
#include <memory>

#include "caffe/core/threads_for_now.hpp"
#include "caffe/net.hpp"
#include "tests/support/net_of.hpp"

namespace caffe {
namespace {

std::atomic<int> came{0}, came_wrongly{0};
uintptr_t stack_begin = 0, stack_end = 0;
// OpenBLAS has a thread that may receive signals: it is neither.
thread_local bool is_caller = false, is_in_team = false;

void Look(int) {
  const int here = 0;
  const auto at = reinterpret_cast<uintptr_t>(&here);
  if (is_in_team || (is_caller && (at < stack_begin || at >= stack_end))) ++came_wrongly;
  ++came;
}

class HandlersTest : public ::testing::TestWithParam<int> {
 protected:
  HandlersTest() {
    pthread_attr_t attributes;
    void* begin = nullptr;
    size_t size = 0;
    EXPECT_EQ(::pthread_getattr_np(::pthread_self(), &attributes), 0);
    EXPECT_EQ(::pthread_attr_getstack(&attributes, &begin, &size), 0);
    ::pthread_attr_destroy(&attributes);
    stack_begin = reinterpret_cast<uintptr_t>(begin);
    stack_end = stack_begin + size;
    came = came_wrongly = 0;
    is_caller = true;
    struct sigaction action {};
    action.sa_handler = Look;
    action.sa_flags = SA_RESTART;
    ::sigaction(SIGALRM, &action, &before_);
  }
  ~HandlersTest() override {
    Send(0);
    ::sigaction(SIGALRM, &before_, nullptr);
  }

  static void Send(int microseconds) {
    itimerval interval{};
    interval.it_value.tv_usec = interval.it_interval.tv_usec = microseconds;
    ::setitimer(ITIMER_REAL, &interval, nullptr);
  }

  static void RunUntilSignalsCame(Net& net) {
    Send(200);
    while (came < 300) {
      net.Forward();
      net.Backward();
    }
    Send(0);
  }

 private:
  struct sigaction before_ {};
};

INSTANTIATE_TEST_SUITE_P(Threads, HandlersTest, ::testing::Values(1, 2, 4));

TEST_P(HandlersTest, RunOnTheCallersStack) {
  const ThreadsForNow threads(GetParam());
  // Starts the threads like a program's own loop.
#pragma omp parallel num_threads(GetParam())
  is_in_team = omp_get_thread_num() > 0;
  const std::unique_ptr<Net> net = testing::NetOf(R"(
    force_backward: true
    layer { name: 'x' type: 'DummyData' top: 'x' dummy_data_param {
            shape { dim: 16 dim: 1 dim: 28 dim: 28 } data_filler { type: 'gaussian' } } }
    layer { name: 'c' type: 'Convolution' bottom: 'x' top: 'c'
            convolution_param { num_output: 20 kernel_size: 5 weight_filler { type: 'xavier' } } }
    layer { name: 'f' type: 'InnerProduct' bottom: 'c' top: 'f'
            inner_product_param { num_output: 100 weight_filler { type: 'xavier' } } }
    layer { name: 'l' type: 'Reduction' bottom: 'f' top: 'l' loss_weight: 1 })");
  RunUntilSignalsCame(*net);
  EXPECT_EQ(came_wrongly, 0) << "of " << came;
}

}  // namespace
}  // namespace caffe
