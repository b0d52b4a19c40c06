local world, balls, log, frames = nil, {}, {}, 0

local function hit(a, b, contact)
  local x, y = contact:getPositions()
  log[#log + 1] = ("%d hits %d at %.1f, %.1f"):format(a:getUserData(), b:getUserData(), x, y)
end

function love.load()
  world = love.physics.newWorld()
  world:setCallbacks(nil, nil, hit)
  local walls = love.physics.newChainShape(true, 0, 0, 800, 0, 800, 600, 0, 600)
  love.physics.newFixture(love.physics.newBody(world), walls):setUserData(0)
  for i = 1, 500 do
    local ball = love.physics.newBody(world, i % 25 * 30 + 30, i % 20 * 28 + 30, "dynamic")
    local fixture = love.physics.newFixture(ball, love.physics.newCircleShape(8))
    fixture:setUserData(i)
    balls[i] = ball
  end
end

-- All to the middle.
local function steer()
  for _, ball in ipairs(balls) do
    local x, y = ball:getPosition()
    ball:applyForce(400 - x, 300 - y)
  end
end

local function pack()
  local packed = love.data.compress("string", "zlib", table.concat(log, "\n"))
  log = {}
  return #packed
end

function love.update()
  steer()
  world:update(1 / 60)
  frames = frames + 1
  if frames % 30 == 0 then print(frames, #log, pack()) end
  if frames == 200 then love.event.quit() end
end
