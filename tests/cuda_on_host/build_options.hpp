// Makes the emulation count as built with a GPU. Found before the build's own file.
#pragma once
