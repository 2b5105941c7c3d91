// How the emulation counts as built: with a GPU. Found before the file of the build.
#pragma once
