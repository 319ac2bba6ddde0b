"""What several views use and that knows this application: actions and shortcuts, the picker, item painting.

Plain controls are `widgets`.
"""
