"""Models that run on this machine: listed, downloaded, found in place, run by llama.cpp's server, and removed.

Start at `local_models.py`, which joins the parts. `catalogue.py` has the models that can be downloaded,
`found_files.py` finds those of other programs, `engine/download.py` fetches a file with resume and checksum.
`server_program.py` finds or unpacks llama.cpp's server, `server_process.py` runs it for one model, `server_queue.py`
starts and ends it as requests come. `machine.py` says what this machine can hold, `gguf.py` reads what a file says of
itself. How a request reaches the server is in `engine/models/local_model.py`; servers that a person runs are found by
`engine/models/catalog`.
"""
