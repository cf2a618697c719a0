"""A small Discord on 127.0.0.1, to which an unmodified discord.py logs in.

```
discord_server   what tests hold: a guild to act in, what the bot posted, failures to order
  gateway        hello, identify, resume with replay, heartbeats, invalid sessions
  rest           the routes, who may use them, and what is recorded of each request
  failures       answers ordered in advance: 429, 502 before or after the effect, silence
    state        the guild and what happens in it; everything that happens is an event for the gateway
      payloads   what Discord says about it on the wire
      model      users, roles, channels, threads, messages
```
"""
