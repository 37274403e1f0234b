"""Statistics of tensors that lie on an accelerator, without ever making the program wait for it.

    tensors --reduction--> one vector on the device --shipment, a copy that nobody waits for--> host --layout--> matrix

What is launched at a step is read some steps later. Everything that knows what a stream or an event is stands behind
`transport.Transports`, which tests replace.
"""
