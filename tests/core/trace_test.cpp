#include "caffe/trace.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>
#include <thread>

#include "caffe/error.hpp"

namespace caffe {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::string Json(const Trace& trace) {
  std::ostringstream text;
  trace.WriteJson(text);
  return text.str();
}

// A name in Latin-1, and one that is cut in the middle of a letter.
TEST(Trace, IsUtf8) {
  Trace trace;
  {
    const TraceRow row(&trace, 0, "compute");
    const TraceSpan latin("d\xe9");
    std::string letters;
    for (int i = 0; i < 200; ++i) letters += "\xc3\xa9";
    const TraceSpan wide(letters);
  }
  EXPECT_THAT(Json(trace), HasSubstr(R"("d\\xe9")"));
  EXPECT_THAT(Json(trace), HasSubstr(R"(\\xc3")"));
}

TEST(Trace, SpansGoToTheThreadsRow) {
  Trace trace;
  { const TraceSpan nowhere("nowhere"); }
  {
    const TraceRow row(&trace, 1, "compute");
    const TraceSpan outer("forward");
    const TraceSpan inner("conv\"1\"");
    std::thread([&] { const TraceSpan elsewhere("elsewhere"); }).join();
  }
  { const TraceSpan nowhere("afterwards"); }
  const std::string json = Json(trace);
  EXPECT_THAT(json, HasSubstr(R"("args":{"name":"rank 1"})"));
  EXPECT_THAT(json, HasSubstr(R"("args":{"name":"compute"})"));
  EXPECT_THAT(json, HasSubstr(R"({"ph":"X","name":"forward","pid":1,"tid":0,"ts":)"));
  EXPECT_THAT(json, HasSubstr(R"("name":"conv\"1\"")"));
  for (const char* absent : {"nowhere", "elsewhere", "afterwards"}) {
    EXPECT_THAT(json, Not(HasSubstr(absent)));
  }
}

TEST(Trace, KeepsTheLatestSpans) {
  Trace trace(3);
  const TraceRow row(&trace, 0, "compute");
  for (const char* name : {"a", "b", "c", "d", "e"}) {
    const TraceSpan span(name);
  }
  const std::string json = Json(trace);
  EXPECT_THAT(json, Not(HasSubstr(R"("name":"b")")));
  EXPECT_LT(json.find(R"("name":"c")"), json.find(R"("name":"d")"));
  EXPECT_THAT(json, HasSubstr(R"("name":"e")"));
  EXPECT_THAT(json, HasSubstr(R"("forgotten_spans":2)"));
}

TEST(Trace, CutsLongNames) {
  Trace trace;
  const TraceRow row(&trace, 0, "compute");
  const std::string name(100, 'x');
  { const TraceSpan span(name); }
  EXPECT_THAT(Json(trace), HasSubstr("\"" + std::string(47, 'x') + "\""));
}

TEST(Trace, NeedsRoom) {
  EXPECT_THROW(Trace{0}, InvalidArgument);
}

}  // namespace
}  // namespace caffe
