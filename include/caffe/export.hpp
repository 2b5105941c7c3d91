// CAFFE_EXPORT: what libcaffe shows to others. Everything else is hidden in it.
#pragma once

#ifndef CAFFE_EXPORT  // empty in the runtime library, which shows nothing of these
#define CAFFE_EXPORT __attribute__((visibility("default")))
#endif
