function love.conf(t)
  for _, name in ipairs { "window", "graphics", "audio", "joystick", "touch" } do
    t.modules[name] = false
  end
end
