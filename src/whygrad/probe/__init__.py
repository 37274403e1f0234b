"""The probe: what runs inside the user's process.

It watches, counts and records; it never changes what the program computes and never raises into it.
"""
